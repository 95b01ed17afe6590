// A stencil that reads before the first element.
// forward: x - F.pad(x, (1, 0))[:-1]
// inputs: x = torch.randn(500)
// finding: out_of_bounds
#include <torch/extension.h>

__global__ void difference(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float before = x[i - 1];
  y[i] = x[i] - (i > 0 ? before : 0.0f);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  difference<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
