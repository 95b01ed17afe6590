// The halo on the left lies before the tile.
// forward: x + F.pad(x, (1, 0))[:, :-1]
// inputs: x = torch.randn(12, 64)
// finding: out_of_bounds
#include <torch/extension.h>

__global__ void pairs(const float* x, float* y, int n) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  tile[t] = x[blockIdx.x * n + t];
  if (t == 0) tile[t - 1] = 0.0f;
  __syncthreads();
  y[blockIdx.x * n + t] = tile[t] + tile[t - 1];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  pairs<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
