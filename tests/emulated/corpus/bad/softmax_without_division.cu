// Exponentials that are never divided by their sum.
// forward: torch.softmax(x, dim=1)
// inputs: x = torch.randn(12, 40)
// expected: wrong_value
#include <torch/extension.h>

__global__ void softmax(const float* x, float* y, int columns) {
  float best = -INFINITY;
  for (int i = 0; i < columns; ++i) best = fmaxf(best, x[blockIdx.x * columns + i]);
  y[blockIdx.x * columns + threadIdx.x] = expf(x[blockIdx.x * columns + threadIdx.x] - best);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  softmax<<<x.size(0), x.size(1)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
