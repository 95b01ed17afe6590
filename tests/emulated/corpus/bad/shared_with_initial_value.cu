// Shared memory with an initial value.
// forward: (x > 0).sum().reshape(1).float()
// inputs: x = torch.randn(36)
// expected: build_error
#include <torch/types.h>

__global__ void count(const float* x, float* y) {
  __shared__ int found = 0;
  if (x[threadIdx.x] > 0.0f) atomicAdd(&found, 1);
  __syncthreads();
  if (threadIdx.x == 0) *y = found;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({1}, x.options());
  count<<<1, x.numel()>>>(x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
