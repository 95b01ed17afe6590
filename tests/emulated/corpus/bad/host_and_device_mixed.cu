// The kernel is right; the bias that is added to its result lies on the host.
// forward: 2 * x + torch.arange(8., device=x.device)
// inputs: x = torch.randn(64, 8)
// expected: runtime_error
// alone: beside a source that moves tensors, those of the host are not kept apart
// returns: ext.run(x) + torch.arange(8.)
#include <torch/extension.h>
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  twice<<<(x.numel() + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
