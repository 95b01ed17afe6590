// Two warps of a block with roles of their own, and barriers that both reach.
// forward: x + 0.5
// inputs: x = torch.randn(4, 128)
#include <torch/extension.h>

__global__ void relay(const float* x, float* y, int columns) {
  __shared__ float slot[2][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, steps = columns / 32;
  for (int s = 0; s <= steps; ++s) {
    if (warp == 0 && s < steps) slot[s & 1][lane] = x[blockIdx.x * columns + s * 32 + lane];
    if (warp == 1 && s > 0) y[blockIdx.x * columns + (s - 1) * 32 + lane] = slot[(s - 1) & 1][lane] + 0.5f;
    __syncthreads();
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  relay<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
