// A shuffle from a lane that is not there.
// forward: x[:, 20:21].repeat(1, 16)
// inputs: x = torch.randn(12, 32)
// finding: absent_lanes
#include <torch/extension.h>

__global__ void spread(const float* x, float* y, int n) {
  float v = x[blockIdx.x * n + threadIdx.x];
  if (threadIdx.x < 16) y[blockIdx.x * 16 + threadIdx.x] = __shfl_sync(0x0000ffff, v, 20);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0), 16}, x.options());
  spread<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
