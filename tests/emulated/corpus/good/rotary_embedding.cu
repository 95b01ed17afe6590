// Rotary position embedding of pairs.
// forward: torch.stack([x[..., 0::2] * c - x[..., 1::2] * s, x[..., 0::2] * s + x[..., 1::2] * c], dim=-1).flatten(-2)
// inputs: x = torch.randn(3, 17, 12), c = torch.randn(17, 6), s = torch.randn(17, 6)
#include <torch/extension.h>

__global__ void rotate(const float2* x, const float* c, const float* s, float2* y, int length, int pairs, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int angle = i % (length * pairs);
  float2 v = x[i];
  y[i] = make_float2(v.x * c[angle] - v.y * s[angle], v.x * s[angle] + v.y * c[angle]);
}

torch::Tensor run(torch::Tensor x, torch::Tensor c, torch::Tensor s) {
  auto y = torch::empty_like(x);
  int total = x.numel() / 2;
  rotate<<<(total + 63) / 64, 64>>>((float2*)x.data_ptr(), c.data_ptr<float>(), s.data_ptr<float>(), (float2*)y.data_ptr(), x.size(1), x.size(2) / 2, total);
  return y;
}
