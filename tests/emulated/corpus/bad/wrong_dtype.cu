// Answers in double.
// forward: x + 1
// inputs: x = torch.randn(11, 17)
// expected: wrong_dtype
#include <torch/extension.h>

__global__ void add_one(const float* x, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (double)x[i] + 1.0;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty(x.sizes(), x.options().dtype(torch::kDouble));
  int n = x.numel();
  add_one<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<double>(), n);
  return y;
}
