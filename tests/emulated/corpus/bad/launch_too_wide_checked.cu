// 2048 threads in a block; the error is checked.
// forward: x + 1
// inputs: x = torch.randn(5, 400)
// expected: runtime_error
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>

__global__ void add_one(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.0f;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  add_one<<<(n + 2047) / 2048, 2048>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
