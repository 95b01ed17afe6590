// A barrier in a loop whose length differs from thread to thread.
// forward: x.sum(dim=1)
// inputs: x = torch.randn(12, 70)
// finding: barrier_divergence
#include <torch/extension.h>

__global__ void row_sum(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = 0.0f;
  for (int i = threadIdx.x; i < n; i += 64) {
    s[threadIdx.x] += x[blockIdx.x * n + i];
    __syncthreads();
  }
  for (int h = 32; h > 0; h /= 2) {
    __syncthreads();
    if (threadIdx.x < h) s[threadIdx.x] += s[threadIdx.x + h];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  row_sum<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
