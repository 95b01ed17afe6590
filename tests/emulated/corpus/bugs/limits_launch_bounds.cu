// 256 threads where __launch_bounds__ promises 128.
// forward: x * 2
// inputs: x = torch.randn(256)
// finding: too_many_threads
#include <torch/extension.h>

__global__ void __launch_bounds__(128) twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  twice<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
