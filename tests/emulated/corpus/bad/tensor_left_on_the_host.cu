// A table that is made at each call and never put on the GPU, given to a kernel.
// forward: x + torch.arange(8., device=x.device)
// inputs: x = torch.randn(64, 8)
// expected: runtime_error
// returns: ext.run(x, torch.arange(8.))
#include <torch/extension.h>
__global__ void add_table(const float* x, const float* table, float* y, int n, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + table[i % width];
}
torch::Tensor run(torch::Tensor x, torch::Tensor table) {
  TORCH_CHECK(x.is_cuda(), "x must be on the GPU");
  auto y = torch::empty_like(x);
  int n = x.numel();
  add_table<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), table.data_ptr<float>(), y.data_ptr<float>(), n, table.numel());
  return y;
}
