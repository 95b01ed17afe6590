// The wrong stride: rows where columns are meant.
// forward: x * 2
// inputs: x = torch.randn(40, 10)
// finding: out_of_bounds
#include <torch/extension.h>

__global__ void twice(const float* x, float* y, int rows, int columns) {
  int i = blockIdx.x * rows + threadIdx.x;
  y[i] = 2.0f * x[i];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::zeros_like(x);
  twice<<<x.size(0), x.size(1)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1));
  return y;
}
