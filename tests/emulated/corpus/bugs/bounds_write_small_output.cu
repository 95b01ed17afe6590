// Writes a row for each block into an output that has one for two.
// forward: x.sum(dim=1)[::2].clone()
// inputs: x = torch.randn(64, 8)
// finding: out_of_bounds
#include <torch/extension.h>

__global__ void row_sum(const float* x, float* y, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += x[blockIdx.x * n + i];
  if (blockIdx.x % 2 == 0) y[blockIdx.x / 2] = sum;
  else y[blockIdx.x] = sum;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0) / 2}, x.options());
  row_sum<<<x.size(0), 1>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
