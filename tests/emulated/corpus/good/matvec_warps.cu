// A matrix times a vector, a warp for each row, float2 loads.
// forward: a @ x
// inputs: a = torch.randn(37, 94), x = torch.randn(94)
#include <torch/extension.h>

__global__ void matvec(const float2* a, const float2* x, float* y, int rows, int pairs) {
  const int warp = threadIdx.x / warpSize, lane = threadIdx.x % warpSize;
  const int row = blockIdx.x * (blockDim.x / warpSize) + warp;
  float sum = 0.0f;
  if (row < rows) {
    for (int i = lane; i < pairs; i += warpSize) {
      float2 p = a[row * pairs + i], q = x[i];
      sum += p.x * q.x + p.y * q.y;
    }
  }
#pragma unroll
  for (int offset = warpSize / 2; offset > 0; offset /= 2) sum += __shfl_down_sync(0xFFFFFFFF, sum, offset);
  if (lane == 0 && row < rows) y[row] = sum;
}

torch::Tensor run(torch::Tensor a, torch::Tensor x) {
  int rows = a.size(0);
  auto y = torch::empty({rows}, a.options());
  matvec<<<(rows + 3) / 4, 128>>>((const float2*)a.data_ptr<float>(), (const float2*)x.data_ptr<float>(), y.data_ptr<float>(), rows, a.size(1) / 2);
  return y;
}
