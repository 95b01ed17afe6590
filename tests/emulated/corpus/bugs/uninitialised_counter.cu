// A shared counter that nobody set to zero.
// forward: (x > 0).sum(dim=1).float()
// inputs: x = torch.randn(12, 64)
// finding: uninitialised_shared
#include <torch/extension.h>

__global__ void count(const float* x, float* y, int n) {
  __shared__ int found;
  if (x[blockIdx.x * n + threadIdx.x] > 0.0f) atomicAdd(&found, 1);
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = found;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  count<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
