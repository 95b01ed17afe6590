// A table of the host that the extension itself puts on the GPU, before a kernel reads it.
// forward: x + torch.arange(8., device=x.device)
// inputs: x = torch.randn(64, 8)
// alone: in a build with a tensor that moves nothing is kept from kernels
// returns: ext.run(x, torch.arange(8.))
#include <torch/extension.h>
__global__ void add_table(const float* x, const float* table, float* y, int n, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + table[i % width];
}
torch::Tensor run(torch::Tensor x, torch::Tensor table) {
  auto y = torch::empty_like(x);
  auto there = table.is_cuda() ? table : table.to(x.device());
  int n = x.numel();
  add_table<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), there.data_ptr<float>(), y.data_ptr<float>(), n, there.numel());
  return y;
}
