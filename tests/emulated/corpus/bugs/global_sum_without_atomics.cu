// All threads add to one number.
// forward: x.sum().reshape(1)
// inputs: x = torch.randn(256)
// finding: global_race
#include <torch/extension.h>

__global__ void total(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[0] += x[i];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::zeros({1}, x.options());
  int n = x.numel();
  total<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
