// 60000 bytes of dynamic shared memory without cudaFuncSetAttribute; the error is checked.
// forward: x.clone()
// inputs: x = torch.randn(300)
// expected: runtime_error
#include <torch/extension.h>

__global__ void copy(const float* x, float* y, int n) {
  extern __shared__ float s[];
  int t = threadIdx.x;
  if (t < n) s[t] = x[t];
  __syncthreads();
  if (t < n) y[t] = s[t];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  copy<<<1, 512, 60000>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  cudaError_t error = cudaGetLastError();
  TORCH_CHECK(error == cudaSuccess, "launch failed: ", cudaGetErrorString(error));
  return y;
}
