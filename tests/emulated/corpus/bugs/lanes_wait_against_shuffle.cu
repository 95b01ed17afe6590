// Half of a warp waits while the other half shuffles with a mask that names all.
// forward: x.reshape(-1, 32).sum(1)
// inputs: x = torch.randn(64)
// finding: absent_lanes
#include <torch/extension.h>

__global__ void row_sums(const float* x, float* y) {
  const int lane = threadIdx.x % 32;
  float v = x[blockIdx.x * 32 + lane];
  if (lane < 16) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  } else {
    for (int o = 16; o > 0; o >>= 1) __syncwarp();
  }
  if (lane == 0) y[blockIdx.x] = v;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.numel() / 32}, x.options());
  row_sums<<<x.numel() / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
