// Shared memory as long as an argument says.
// forward: x.flip(0)
// inputs: x = torch.randn(36)
// expected: build_error
#include <torch/types.h>

__global__ void flip(const float* x, float* y, int n) {
  __shared__ float s[n];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[n - 1 - threadIdx.x];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  flip<<<1, x.numel()>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
