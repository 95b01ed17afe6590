// Rows of an odd length as float2.
// forward: x[:, :8] + 1
// inputs: x = torch.randn(6, 9)
// finding: misaligned
#include <torch/extension.h>

__global__ void add_one(const float* x, float* y, int n) {
  float2 v = reinterpret_cast<const float2*>(x + blockIdx.x * n)[threadIdx.x];
  y[blockIdx.x * 8 + 2 * threadIdx.x] = v.x + 1.0f;
  y[blockIdx.x * 8 + 2 * threadIdx.x + 1] = v.y + 1.0f;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty({x.size(0), 8}, x.options());
  add_one<<<x.size(0), 4>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
