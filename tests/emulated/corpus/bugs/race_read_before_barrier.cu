// Reads what another warp writes, with no barrier between.
// forward: x.flip(1)
// inputs: x = torch.randn(12, 64)
// finding: shared_race|uninitialised_shared
#include <torch/extension.h>

__global__ void flip(const float* x, float* y, int n) {
  __shared__ float row[64];
  row[threadIdx.x] = x[blockIdx.x * n + threadIdx.x];
  y[blockIdx.x * n + threadIdx.x] = row[n - 1 - threadIdx.x];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  flip<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
