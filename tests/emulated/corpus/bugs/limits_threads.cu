// A block of 64 x 32 threads.
// forward: x * 2
// inputs: x = torch.randn(32, 64)
// finding: too_many_threads
#include <torch/extension.h>

__global__ void twice(const float* x, float* y, int n) {
  int i = threadIdx.y * 64 + threadIdx.x;
  y[i] = 2.0f * x[i];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  twice<<<1, dim3(64, 32)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
