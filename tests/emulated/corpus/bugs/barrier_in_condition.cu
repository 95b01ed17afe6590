// A barrier that only the threads with work reach, and one for all.
// forward: x.flip(0)
// inputs: x = torch.randn(100)
// finding: barrier_divergence
#include <torch/extension.h>

__global__ void flip(const float* x, float* y, int n) {
  __shared__ float s[128];
  int i = threadIdx.x;
  if (i < n) {
    s[i] = x[i];
    __syncthreads();
    y[i] = s[n - 1 - i];
  }
  __syncthreads();
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  flip<<<1, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
