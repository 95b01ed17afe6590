// A block of 40 threads whose second warp sums over lanes that do not exist.
// forward: x.sum(dim=1)
// inputs: x = torch.randn(12, 40)
// finding: absent_lanes
#include <torch/extension.h>

__global__ void row_sum(const float* x, float* y, int n) {
  __shared__ float s[2];
  float v = x[blockIdx.x * n + threadIdx.x];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);
  if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = s[0] + s[1];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  row_sum<<<x.size(0), 40>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
