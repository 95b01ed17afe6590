// A kernel that is called, not launched.
// forward: x + 1
// inputs: x = torch.randn(40)
// expected: build_error
#include <torch/types.h>

__global__ void add_one(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.0f;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  add_one(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
