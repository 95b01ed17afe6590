// Of all rows with a large element, that of the block that comes first is taken for the first.
// forward: (x > 0.5).any(dim=1).int().argmax().reshape(1).float()
// inputs: x = torch.randn(12, 64)
// finding: order
#include <torch/extension.h>

__device__ int first_row;
__global__ void first(const float* x, float* y, int n) {
  if (__syncthreads_or(x[blockIdx.x * n + threadIdx.x] > 0.5f) && threadIdx.x == 0) {
    if (atomicCAS(&first_row, -1, (int)blockIdx.x) == -1) *y = blockIdx.x;
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({1}, x.options());
  int none = -1;
  cudaMemcpyToSymbol(first_row, &none, sizeof(int));
  first<<<x.size(0), x.size(1)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
