"""A CUDA kernel and a Triton kernel in one program.

forward: (x + 1) * 2
inputs: x=torch.randn(300)
"""

import triton
import triton.language as tl
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
__global__ void increment(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1.0f;
}
torch::Tensor run(torch::Tensor x) {
  auto y = x.clone();
  increment<<<(y.numel() + 127) / 128, 128>>>(y.data_ptr<float>(), y.numel());
  return y;
}
"""
extension = load_inline(
    name="increment", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=SOURCE, functions=["run"]
)


@triton.jit
def double(x, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < size) * 2, mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        y = extension.run(x)
        double[(triton.cdiv(y.numel(), 128),)](y, y.numel(), BLOCK=128)
        return y
