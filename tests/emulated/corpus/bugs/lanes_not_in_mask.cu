// A mask that does not name the lanes that call.
// forward: x.sum(dim=1)
// inputs: x = torch.randn(12, 16)
// finding: absent_lanes
#include <torch/extension.h>

__global__ void row_sum(const float* x, float* y, int n) {
  float v = threadIdx.x < 16 ? x[blockIdx.x * n + threadIdx.x] : 0.0f;
  for (int o = 8; o > 0; o /= 2) v += __shfl_xor_sync(0x0000ffff, v, o);
  if (threadIdx.x == 0) y[blockIdx.x] = v;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  row_sum<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
