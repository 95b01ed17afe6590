// The tail is read as a whole float4.
// forward: x * 2
// inputs: x = torch.randn(1003)
// finding: out_of_bounds
#include <torch/extension.h>

__global__ void twice(const float* x, float* y, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i >= n) return;
  float4 v = *reinterpret_cast<const float4*>(x + i);
  float parts[4] = {v.x, v.y, v.z, v.w};
  for (int k = 0; k < 4 && i + k < n; ++k) y[i + k] = 2.0f * parts[k];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  twice<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
