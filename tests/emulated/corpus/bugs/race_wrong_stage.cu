// Two stages that are one: the next tile is loaded over the present one.
// forward: x.reshape(12, 2, 32).flip(2).reshape(12, 64)
// inputs: x = torch.randn(12, 64)
// finding: shared_race
#include <torch/extension.h>

__global__ void flip_tiles(const float* x, float* y, int n) {
  __shared__ float stage[2][32];
  const float* row = x + blockIdx.x * n;
  int t = threadIdx.x, now = 0;
  stage[now][t] = row[t];
  __syncthreads();
  for (int tile = 0; tile < n / 32; ++tile) {
    if (tile + 1 < n / 32) stage[now][t] = row[(tile + 1) * 32 + t];
    y[blockIdx.x * n + tile * 32 + t] = stage[now][31 - t];
    __syncthreads();
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  flip_tiles<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
