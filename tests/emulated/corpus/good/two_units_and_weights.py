"""Bindings in cpp_sources, kernels in cuda_sources, flags, and a module with weights.

forward: torch.tanh(x)
inputs: x = torch.randn(27, 39)
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

cpp = """
#include <torch/extension.h>
void launch(const float* x, float* y, int n);

torch::Tensor squash(torch::Tensor x, double scale = 1.0) {
  TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor");
  TORCH_CHECK(x.scalar_type() == torch::kFloat32, "x must be float32");
  auto y = torch::empty_like(x);
  launch(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y * scale;
}
"""
cuda = """
#include <cuda_runtime.h>
#include <cmath>
namespace {
__global__ void squash_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * SIZE + threadIdx.x;
  if (i < n) y[i] = tanhf(x[i]);
}
}
void launch(const float* x, float* y, int n) { squash_kernel<<<(n + SIZE - 1) / SIZE, SIZE>>>(x, y, n); }
"""
ext = load_inline(
    name="squash",
    cpp_sources=[cpp],
    cuda_sources=[cuda],
    functions=["squash"],
    verbose=False,
    extra_cuda_cflags=["-O3", "--use_fast_math", "-DSIZE=96", "-lineinfo"],
    extra_cflags=["-O2"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.squash = ext.squash

    def forward(self, x):
        return self.squash(x.contiguous(), 1.0)
