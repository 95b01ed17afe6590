// Each block adds what the block before has left.
// forward: torch.cumsum(x.sum(dim=1), 0)
// inputs: x = torch.randn(12, 64)
// finding: global_race|order
#include <torch/extension.h>

__global__ void carry(const float* x, float* y, int n) {
  if (threadIdx.x != 0) return;
  float sum = blockIdx.x > 0 ? y[blockIdx.x - 1] : 0.0f;
  for (int i = 0; i < n; ++i) sum += x[blockIdx.x * n + i];
  y[blockIdx.x] = sum;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::zeros({x.size(0)}, x.options());
  carry<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
