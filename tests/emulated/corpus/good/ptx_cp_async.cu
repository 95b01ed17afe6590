// Inline PTX: asynchronous copies into shared memory, groups, and a wait.
// forward: x.flip(1)
// inputs: x = torch.randn(5, 256)
#include <torch/extension.h>

__global__ void flip(const float* x, float* y) {
  __shared__ __align__(16) float tile[256];
  const float* from = x + blockIdx.x * 256 + threadIdx.x * 4;
  unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&tile[threadIdx.x * 4]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(from));
  asm volatile("cp.async.commit_group;\n" ::);
  asm volatile("cp.async.wait_group %0;\n" ::"n"(0));
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 64) y[blockIdx.x * 256 + i] = tile[255 - i];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  flip<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
