// Dynamic shared memory of as many bytes as there are floats.
// forward: x.flip(1)
// inputs: x = torch.randn(12, 64)
// finding: out_of_bounds
#include <torch/extension.h>

__global__ void flip(const float* x, float* y, int n) {
  extern __shared__ float row[];
  row[threadIdx.x] = x[blockIdx.x * n + threadIdx.x];
  __syncthreads();
  y[blockIdx.x * n + threadIdx.x] = row[n - 1 - threadIdx.x];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  flip<<<x.size(0), 64, x.size(1)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
