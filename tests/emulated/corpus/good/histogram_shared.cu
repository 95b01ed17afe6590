// A histogram in shared memory, then added to the global one.
// forward: torch.histc(x, bins=16, min=0.0, max=1.0)
// inputs: x = torch.rand(47, 51)
#include <torch/extension.h>

__global__ void histogram(const float* x, float* bins, int n) {
  __shared__ unsigned int local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
    if (x[i] >= 0.0f && x[i] <= 1.0f) atomicAdd(&local[min((int)(x[i] * 16.0f), 15)], 1u);
  }
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], (float)local[threadIdx.x]);
}

torch::Tensor run(torch::Tensor x) {
  auto bins = torch::zeros({16}, x.options());
  histogram<<<5, 96>>>(x.data_ptr<float>(), bins.data_ptr<float>(), x.numel());
  return bins;
}
