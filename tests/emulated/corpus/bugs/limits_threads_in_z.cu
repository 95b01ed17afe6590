// 128 threads in z, where there are 64 at most.
// forward: x * 2
// inputs: x = torch.randn(128)
// finding: too_many_threads
#include <torch/extension.h>

__global__ void twice(const float* x, float* y, int n) {
  y[threadIdx.z] = 2.0f * x[threadIdx.z];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  twice<<<1, dim3(1, 1, 128)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
