// A moving average with a halo in shared memory.
// forward: F.avg_pool1d(x[:, None], 5, stride=1, padding=2)[:, 0]
// inputs: x = torch.randn(7, 203)
#include <torch/extension.h>
constexpr int RADIUS = 2, WIDTH = 64;

__global__ void average(const float* x, float* y, int n) {
  __shared__ float tile[WIDTH + 2 * RADIUS];
  const float* row = x + blockIdx.y * n;
  int i = blockIdx.x * WIDTH + threadIdx.x, s = threadIdx.x + RADIUS;
  tile[s] = i < n ? row[i] : 0.0f;
  if (threadIdx.x < RADIUS) {
    tile[s - RADIUS] = i >= RADIUS ? row[i - RADIUS] : 0.0f;
    tile[s + WIDTH] = i + WIDTH < n ? row[i + WIDTH] : 0.0f;
  }
  __syncthreads();
  if (i >= n) return;
  float sum = 0.0f;
  for (int k = -RADIUS; k <= RADIUS; ++k) sum += tile[s + k];
  y[blockIdx.y * n + i] = sum / (2 * RADIUS + 1);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.size(1);
  average<<<dim3((n + WIDTH - 1) / WIDTH, x.size(0)), WIDTH>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
