// One warp waits once more often than the other.
// forward: x + 1
// inputs: x = torch.randn(12, 64)
// finding: barrier_divergence
#include <torch/extension.h>

__global__ void add_one(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[blockIdx.x * n + threadIdx.x];
  int rounds = threadIdx.x < 32 ? 2 : 1;
  for (int i = 0; i < rounds; ++i) __syncthreads();
  float v = s[63 - threadIdx.x];
  __syncthreads();
  s[63 - threadIdx.x] = v + 1.0f;
  __syncthreads();
  y[blockIdx.x * n + threadIdx.x] = s[threadIdx.x];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  add_one<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
