// float4 from the second element on.
// forward: x[1:257] * 2
// inputs: x = torch.randn(260)
// finding: misaligned
#include <torch/extension.h>

__global__ void twice(const float* x, float* y, int n) {
  float4 v = reinterpret_cast<const float4*>(x + 1)[threadIdx.x];
  reinterpret_cast<float4*>(y)[threadIdx.x] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({256}, x.options());
  int n = x.numel();
  twice<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
