// The last part of a block of threads is never computed: the grid is rounded down.
// forward: x * 2
// inputs: x = torch.randn(10, 130)
// expected: wrong_value
#include <torch/extension.h>

__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::zeros_like(x);
  int n = x.numel();
  twice<<<n / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
