// Launches and error checks inside macros.
// forward: torch.exp(-x * x)
// inputs: x = torch.randn(64, 37)
#include <torch/extension.h>
#define BLOCK_OF_MACRO 128
#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
#define CUDA_OK(call)                                                                \
  do {                                                                               \
    cudaError_t status = (call);                                                     \
    TORCH_CHECK(status == cudaSuccess, "CUDA error: ", cudaGetErrorString(status));  \
  } while (0)
#define LAUNCH_1D(kernel, n, ...) kernel<<<CEIL_DIV(n, BLOCK_OF_MACRO), BLOCK_OF_MACRO>>>(__VA_ARGS__)

__global__ void bell(const float* x, float* y, int n) {
  int i = blockIdx.x * BLOCK_OF_MACRO + threadIdx.x;
  if (i < n) y[i] = expf(-x[i] * x[i]);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  LAUNCH_1D(bell, n, x.data_ptr<float>(), y.data_ptr<float>(), n);
  CUDA_OK(cudaGetLastError());
  CUDA_OK(cudaDeviceSynchronize());
  return y;
}
