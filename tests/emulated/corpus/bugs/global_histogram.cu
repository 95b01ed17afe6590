// A histogram in global memory without atomics.
// forward: torch.histc(x, bins=8, min=0.0, max=1.0)
// inputs: x = torch.rand(256)
// finding: global_race
#include <torch/extension.h>

__global__ void histogram(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[min((int)(x[i] * 8.0f), 7)] += 1.0f;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::zeros({8}, x.options());
  int n = x.numel();
  histogram<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
