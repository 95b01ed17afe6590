// A kernel reads a variable of the host.
// forward: x * 3
// inputs: x = torch.randn(40)
// expected: build_error
#include <torch/types.h>

static float factor = 3.0f;

__global__ void scale(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}

torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  scale<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
