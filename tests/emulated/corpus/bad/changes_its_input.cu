// Right, but in place.
// forward: torch.relu(x)
// inputs: x = torch.randn(13, 21)
// expected: wrong_value
#include <torch/extension.h>

__global__ void relu(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = fmaxf(x[i], 0.0f);
}

torch::Tensor run(torch::Tensor x) {
  int n = x.numel();
  relu<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), n);
  return x;
}
