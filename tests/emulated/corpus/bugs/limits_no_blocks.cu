// A grid rounded down to nothing.
// forward: x * 2
// inputs: x = torch.randn(100)
// finding: invalid_launch
#include <torch/extension.h>

__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  twice<<<n / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
