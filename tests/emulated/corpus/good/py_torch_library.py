# ruff: noqa: PLR0402 - written as models write
"""Registered as an operator of torch's for the GPU, found under torch.ops.

forward: x.abs().sqrt()
inputs: x = torch.randn(77)
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SRC = r"""
#include <torch/extension.h>
#include <torch/library.h>
__global__ void sqrt_abs_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = sqrtf(fabsf(x[i]));
}
at::Tensor sqrt_abs(const at::Tensor& x) {
  TORCH_CHECK(x.device().type() == at::DeviceType::CUDA);
  auto y = at::empty_like(x);
  sqrt_abs_kernel<<<(x.numel() + 31) / 32, 32>>>(x.data_ptr<float>(), y.mutable_data_ptr<float>(), x.numel());
  return y;
}
TORCH_LIBRARY(harness_corpus_ops, m) { m.def("sqrt_abs(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(harness_corpus_ops, CUDA, m) { m.impl("sqrt_abs", &sqrt_abs); }
"""
load_inline(name="sqrt_abs_ops", cpp_sources="", cuda_sources=SRC, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.harness_corpus_ops.sqrt_abs(x)
