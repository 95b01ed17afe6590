// Variance of rows by Welford's method, joined over the lanes.
// forward: x.var(dim=1, unbiased=False)
// inputs: x = torch.randn(22, 173)
#include <torch/extension.h>

__global__ void variance(const float* x, float* y, int columns) {
  float mean = 0.0f, m2 = 0.0f, count = 0.0f;
  for (int i = threadIdx.x; i < columns; i += 32) {
    float v = x[blockIdx.x * columns + i], delta = v - mean;
    count += 1.0f;
    mean += delta / count;
    m2 += delta * (v - mean);
  }
  for (int step = 16; step > 0; step /= 2) {
    float other_mean = __shfl_down_sync(0xffffffff, mean, step), other_m2 = __shfl_down_sync(0xffffffff, m2, step);
    float other_count = __shfl_down_sync(0xffffffff, count, step);
    float total = count + other_count;
    if (total > 0.0f) {
      float delta = other_mean - mean;
      mean += delta * other_count / total;
      m2 += other_m2 + delta * delta * count * other_count / total;
      count = total;
    }
  }
  if (threadIdx.x == 0) y[blockIdx.x] = m2 / columns;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  variance<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
