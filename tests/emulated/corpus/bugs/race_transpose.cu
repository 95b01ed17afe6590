// A transpose through shared memory without its barrier.
// forward: x.t().contiguous()
// inputs: x = torch.randn(16, 16)
// finding: shared_race|uninitialised_shared
#include <torch/extension.h>

__global__ void transpose(const float* x, float* y, int n) {
  __shared__ float tile[16][17];
  tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 16 + threadIdx.x];
  y[threadIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  transpose<<<1, dim3(16, 16)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
