// Divides by n - 1 where n is asked for.
// forward: x.var(dim=1, unbiased=False)
// inputs: x = torch.randn(9, 33)
// expected: wrong_value
#include <torch/extension.h>

__global__ void variance(const float* x, float* y, int n) {
  float mean = 0.0f, sum = 0.0f;
  const float* row = x + threadIdx.x * n;
  for (int i = 0; i < n; ++i) mean += row[i];
  mean /= n;
  for (int i = 0; i < n; ++i) sum += (row[i] - mean) * (row[i] - mean);
  y[threadIdx.x] = sum / (n - 1);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  variance<<<1, x.size(0)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
