// More than 48 KB of dynamic shared memory, asked for as it must be.
// forward: x.flip(0)
// inputs: x = torch.randn(16000)
#include <torch/extension.h>

__global__ void flip(const float* x, float* y, int n) {
  extern __shared__ float all[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) all[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = all[n - 1 - i];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel(), bytes = n * sizeof(float);
  cudaError_t status = cudaFuncSetAttribute(flip, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  TORCH_CHECK(status == cudaSuccess, cudaGetErrorString(status));
  flip<<<1, 256, bytes>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  TORCH_CHECK(cudaGetLastError() == cudaSuccess, "launch failed");
  return y;
}
