// Thread 0 writes a mean that all others read at once.
// forward: x - x.mean(dim=1, keepdim=True)
// inputs: x = torch.randn(12, 64)
// finding: shared_race|uninitialised_shared
#include <torch/extension.h>

__global__ void centre(const float* x, float* y, int n) {
  __shared__ float mean;
  if (threadIdx.x == 0) {
    mean = 0.0f;
    for (int i = 0; i < n; ++i) mean += x[blockIdx.x * n + i] / n;
  }
  y[blockIdx.x * n + threadIdx.x] = x[blockIdx.x * n + threadIdx.x] - mean;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  centre<<<x.size(0), 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
