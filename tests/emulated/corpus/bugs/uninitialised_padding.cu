// Reads the column that pads a tile.
// forward: x.sum().reshape(1)
// inputs: x = torch.randn(8, 8)
// finding: uninitialised_shared
#include <torch/extension.h>

__global__ void total(const float* x, float* y, int n) {
  __shared__ float tile[8][9];
  tile[threadIdx.x / 8][threadIdx.x % 8] = x[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 9; ++j) sum += j < 9 ? tile[i][j] : 0.0f;
    *y = sum;
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({1}, x.options());
  int n = x.numel();
  total<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
