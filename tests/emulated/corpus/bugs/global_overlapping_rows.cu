// Blocks write one element of their neighbour's row, with a value of their own.
// forward: x.clone()
// inputs: x = torch.randn(12, 32)
// finding: global_race
#include <torch/extension.h>

__global__ void copy(const float* x, float* y, int n) {
  int i = blockIdx.x * n + threadIdx.x;
  if (threadIdx.x <= n && i < gridDim.x * n) y[i] = threadIdx.x < n ? x[i] : 0.0f;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  copy<<<x.size(0), 33>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
