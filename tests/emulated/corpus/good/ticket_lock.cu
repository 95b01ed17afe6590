// Blocks wait their turn at a spin lock, and one after the other change a sum that no atomic protects.
// forward: x.sum().reshape(1)
// inputs: x = torch.randn(12, 64)
#include <torch/extension.h>

__device__ int lock_of_sum = 0;

__global__ void total(const float* x, volatile float* y) {
  float v = x[blockIdx.x * 64 + threadIdx.x] + x[blockIdx.x * 64 + 32 + threadIdx.x];
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock_of_sum, 0, 1) != 0) {
    }
    __threadfence();
    *y += v;
    __threadfence();
    atomicExch(&lock_of_sum, 0);
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::zeros({1}, x.options());
  total<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
