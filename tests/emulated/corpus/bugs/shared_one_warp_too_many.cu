// Warp sums begin at index 1 of an array for as many warps.
// forward: x.sum(dim=1)
// inputs: x = torch.randn(12, 64)
// finding: out_of_bounds
#include <torch/extension.h>

__global__ void row_sum(const float* x, float* y, int n) {
  __shared__ float sums[2];
  float v = x[blockIdx.x * n + threadIdx.x];
  for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(0xffffffff, v, o);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32 + 1] = v;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = sums[1] + sums[2];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  row_sum<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
