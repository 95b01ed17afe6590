// Threads of a block hand values on through global memory without a barrier.
// forward: x.flip(1)
// inputs: x = torch.randn(12, 64)
// finding: global_race
#include <torch/extension.h>

__global__ void flip(const float* x, float* y, float* scratch, int n) {
  scratch[blockIdx.x * n + threadIdx.x] = x[blockIdx.x * n + threadIdx.x];
  y[blockIdx.x * n + threadIdx.x] = scratch[blockIdx.x * n + n - 1 - threadIdx.x];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x), scratch = torch::zeros_like(x);
  flip<<<x.size(0), x.size(1)>>>(x.data_ptr<float>(), y.data_ptr<float>(), scratch.data_ptr<float>(), x.size(1));
  return y;
}
