// A kernel looks up a constant table of the host.
// forward: x.round().clamp(0, 3) * 2
// inputs: x = torch.rand(40) * 3
// expected: build_error
#include <torch/types.h>

constexpr float kTable[4] = {0.0f, 2.0f, 4.0f, 6.0f};

__global__ void look_up(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = kTable[min(max(__float2int_rn(x[i]), 0), 3)];
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  look_up<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
