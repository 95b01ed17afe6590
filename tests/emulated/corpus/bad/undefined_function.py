"""Declared and bound, defined nowhere: it links, and cannot be loaded.

forward: x + 1
inputs: x = torch.randn(6, 6)
expected: load_error | build_error
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

cuda = """
#include <torch/extension.h>
__global__ void kernel(const float* x, float* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] + 1.0f;
}
torch::Tensor add_one_cuda(torch::Tensor x) {
  auto y = torch::empty_like(x);
  kernel<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
"""
declaration = "torch::Tensor add_one(torch::Tensor x);"
ext = load_inline("add_one_undefined", cpp_sources=declaration, cuda_sources=cuda, functions=["add_one"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.add_one(x)
