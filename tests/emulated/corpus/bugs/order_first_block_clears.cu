// Block 0 clears what all blocks add to.
// forward: x.sum().reshape(1)
// inputs: x = torch.randn(12, 64)
// finding: global_race|order
#include <torch/extension.h>

__global__ void total(const float* x, float* y, int n) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *y = 0.0f;
  __syncthreads();
  atomicAdd(y, x[blockIdx.x * n + threadIdx.x]);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::full({1}, 5.0f, x.options());
  total<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
