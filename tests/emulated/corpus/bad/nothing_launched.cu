// Returns what torch::zeros made.
// forward: x * 3
// inputs: x = torch.randn(14, 14)
// expected: wrong_value
#include <torch/extension.h>

__global__ void triple(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 3.0f * x[i];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::zeros_like(x);
  if (x.numel() > 1000000) triple<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
