// A stencil in place: neighbours in other blocks may be changed already.
// forward: x + F.pad(x, (0, 1))[1:]
// inputs: x = torch.randn(512)
// finding: global_race
#include <torch/extension.h>

__global__ void pairs(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = y[i] + (i + 1 < n ? y[i + 1] : 0.0f);
}

torch::Tensor run(torch::Tensor x) {
  auto y = x.clone();
  int n = x.numel();
  pairs<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
