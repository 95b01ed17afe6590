// Rows land where a ticket says, in the order in which blocks come.
// forward: x.clone()
// inputs: x = torch.randn(12, 64)
// finding: order
#include <torch/extension.h>

__device__ int next_row;
__global__ void copy(const float* x, float* y, int n) {
  __shared__ int row;
  if (threadIdx.x == 0) row = atomicAdd(&next_row, 1);
  __syncthreads();
  y[row * n + threadIdx.x] = x[blockIdx.x * n + threadIdx.x];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int zero = 0;
  cudaMemcpyToSymbol(next_row, &zero, sizeof(int));
  copy<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
