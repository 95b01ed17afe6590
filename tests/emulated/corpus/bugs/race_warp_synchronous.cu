// The end of a tree relies on the lanes of a warp going in step.
// forward: x.sum(dim=1)
// inputs: x = torch.randn(12, 64)
// finding: shared_race
#include <torch/extension.h>

__device__ void tail(volatile float* s, int t) {
  s[t] += s[t + 32];
  s[t] += s[t + 16];
  s[t] += s[t + 8];
  s[t] += s[t + 4];
  s[t] += s[t + 2];
  s[t] += s[t + 1];
}
__global__ void row_sum(const float* x, float* y, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[blockIdx.x * n + threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) tail(s, threadIdx.x);
  if (threadIdx.x == 0) y[blockIdx.x] = s[0];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  row_sum<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
