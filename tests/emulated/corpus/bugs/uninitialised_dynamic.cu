// Accumulators in dynamic shared memory are added to, never cleared.
// forward: x.sum(dim=1)
// inputs: x = torch.randn(12, 128)
// finding: uninitialised_shared
#include <torch/extension.h>

__global__ void row_sum(const float* x, float* y, int n) {
  extern __shared__ float own[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) own[threadIdx.x] += x[blockIdx.x * n + i];
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (int i = 0; i < blockDim.x; ++i) sum += own[i];
    y[blockIdx.x] = sum;
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0)}, x.options());
  row_sum<<<x.size(0), 32, 32 * sizeof(float)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
