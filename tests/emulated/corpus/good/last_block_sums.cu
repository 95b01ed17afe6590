// The last block to finish adds up what all left behind.
// forward: (x * x).sum().reshape(1)
// inputs: x = torch.randn(55, 64)
#include <torch/extension.h>

__device__ unsigned int finished = 0;

__global__ void norm(const float* x, volatile float* partial, float* y, int n) {
  __shared__ float sums[128];
  __shared__ bool is_last;
  float own = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += x[i] * x[i];
  sums[threadIdx.x] = own;
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sums[0];
    __threadfence();
    is_last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    float sum = 0.0f;
    for (int i = 0; i < gridDim.x; ++i) sum += partial[i];
    *y = sum;
  }
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({1}, x.options()), partial = torch::empty({9}, x.options());
  norm<<<9, 128>>>(x.data_ptr<float>(), partial.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
