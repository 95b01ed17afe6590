// A full mask where only half of the warp is.
// forward: x.sum(dim=1)
// inputs: x = torch.randn(12, 16)
// finding: absent_lanes
#include <torch/extension.h>

__global__ void row_sum(const float* x, float* y, int n) {
  if (threadIdx.x < 16) {
    float v = x[blockIdx.x * n + threadIdx.x];
    for (int o = 8; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o, 16);
    if (threadIdx.x == 0) y[blockIdx.x] = v;
  }
  __syncthreads();
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  row_sum<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
