// A histogram in shared memory without atomics.
// forward: torch.histc(x, bins=8, min=0.0, max=1.0)
// inputs: x = torch.rand(256)
// finding: shared_race
#include <torch/extension.h>

__global__ void histogram(const float* x, float* y, int n) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  bins[min((int)(x[threadIdx.x] * 8.0f), 7)] += 1;
  __syncthreads();
  if (threadIdx.x < 8) y[threadIdx.x] = bins[threadIdx.x];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({8}, x.options());
  int n = x.numel();
  histogram<<<1, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
