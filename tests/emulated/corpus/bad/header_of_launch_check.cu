// C10_CUDA_KERNEL_LAUNCH_CHECK without c10/cuda/CUDAException.h.
// forward: x + 1
// inputs: x = torch.randn(6, 6)
// expected: build_error
#include <torch/types.h>

__global__ void add_one(const float* x, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] + 1.0f;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  add_one<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
