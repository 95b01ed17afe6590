// Bits of floats as integers, and back.
// forward: torch.rsqrt(x)
// inputs: x = torch.rand(25, 25) + 0.1
#include <torch/extension.h>

__global__ void inverse_root(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i], r = __int_as_float(0x5f3759df - (__float_as_int(v) >> 1));
  for (int k = 0; k < 4; ++k) r = r * (1.5f - 0.5f * v * r * r);
  y[i] = r;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  inverse_root<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
