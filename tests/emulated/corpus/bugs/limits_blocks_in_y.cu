// 70000 blocks in y.
// forward: x * 2
// inputs: x = torch.randn(70000)
// finding: too_many_blocks
#include <torch/extension.h>

__global__ void twice(const float* x, float* y, int n) {
  y[blockIdx.y] = 2.0f * x[blockIdx.y];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  twice<<<dim3(1, x.numel()), 1>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
