// Reads the element after the last, and does not use it.
// forward: x.clone()
// inputs: x = torch.randn(1024)
// finding: out_of_bounds
#include <torch/extension.h>

__global__ void copy(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float next = x[i + 1];
  y[i] = i + 1 < n && next > 1e30f ? next : x[i];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  copy<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
