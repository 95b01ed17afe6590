// Sums kept as a column.
// forward: x.sum(dim=1)
// inputs: x = torch.randn(11, 17)
// expected: wrong_shape
#include <torch/extension.h>

__global__ void row_sum(const float* x, float* y, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += x[threadIdx.x * n + i];
  y[threadIdx.x] = sum;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0), 1}, x.options());
  row_sum<<<1, x.size(0)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
