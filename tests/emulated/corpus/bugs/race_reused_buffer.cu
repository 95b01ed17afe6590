// The buffer of the maxima is used again for the sums too early.
// forward: torch.softmax(x, dim=1)
// inputs: x = torch.randn(12, 64)
// finding: shared_race
#include <torch/extension.h>

__device__ float reduce(float v, float* s, bool is_max) {
  for (int o = 16; o > 0; o /= 2) {
    float other = __shfl_xor_sync(0xffffffff, v, o);
    v = is_max ? fmaxf(v, other) : v + other;
  }
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  return is_max ? fmaxf(s[0], s[1]) : s[0] + s[1];
}
__global__ void softmax(const float* x, float* y, int n) {
  __shared__ float s[2];
  float v = x[blockIdx.x * n + threadIdx.x];
  float e = expf(v - reduce(v, s, true));
  y[blockIdx.x * n + threadIdx.x] = e / reduce(e, s, false);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  softmax<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
