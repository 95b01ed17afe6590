// A kernel that returns a value.
// forward: x + 1
// inputs: x = torch.randn(6, 6)
// expected: build_error
#include <torch/types.h>

__global__ int add_one(const float* x, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] + 1.0f;
  return n;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  add_one<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
