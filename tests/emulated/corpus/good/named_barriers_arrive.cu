// Named barriers by PTX: bar.sync and bar.arrive between producer and consumer warps.
// forward: x * 3
// inputs: x = torch.randn(4, 64)
#include <torch/extension.h>
__device__ __forceinline__ void named_sync(int id, int n) { asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) : "memory"); }
__device__ __forceinline__ void named_arrive(int id, int n) { asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) : "memory"); }
__global__ void k(const float* x, float* y) {
  __shared__ float buf[32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int t = 0; t < 2; ++t) {
    if (warp == 0) {
      if (t) named_sync(2, 64);
      buf[lane] = x[blockIdx.x * 64 + t * 32 + lane];
      named_arrive(1, 64);
    } else {
      named_sync(1, 64);
      y[blockIdx.x * 64 + t * 32 + lane] = buf[lane] * 3.f;
      if (t == 0) named_arrive(2, 64);
    }
  }
}
torch::Tensor run(torch::Tensor x) { auto y = torch::empty_like(x); k<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>()); return y; }
