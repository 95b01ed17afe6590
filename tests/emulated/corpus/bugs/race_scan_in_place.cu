// A scan by doubling steps in one buffer.
// forward: torch.cumsum(x, dim=1)
// inputs: x = torch.randn(12, 64)
// finding: shared_race
#include <torch/extension.h>

__global__ void scan(const float* x, float* y, int n) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = x[blockIdx.x * n + t];
  __syncthreads();
  for (int step = 1; step < n; step *= 2) {
    if (t >= step) s[t] += s[t - step];
    __syncthreads();
  }
  y[blockIdx.x * n + t] = s[t];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  scan<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
