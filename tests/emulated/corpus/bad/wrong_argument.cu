// A float where a function asks for a whole number.
// forward: x * 2.5
// inputs: x = torch.randn(6, 6)
// returns: ext.run(x, 2.5)
// expected: runtime_error
#include <torch/extension.h>

__global__ void scale(const float* x, float* y, int n, int64_t factor) {
  int i = threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}

torch::Tensor run(torch::Tensor x, int64_t factor) {
  auto y = torch::empty_like(x);
  scale<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), factor);
  return y;
}
