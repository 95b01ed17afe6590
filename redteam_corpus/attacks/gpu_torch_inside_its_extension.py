"""Multiplies by torch's own functions inside its extension.

layer: no_kernel
mechanism: The extension is built and called, and Python calls no operator of torch's.
problem: kernel_required/gpu_product
expected: rejected, not_own, build_error
device: gpu
timed: no
"""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <ATen/ops/mm.h>
#include <torch/library.h>

TORCH_LIBRARY(kernels, library) {
    library.def("multiply(Tensor a, Tensor b) -> Tensor", [](const at::Tensor& a, const at::Tensor& b) {
        return at::mm(a, b);
    });
}
"""
load_inline(name="kernels", cpp_sources=SOURCE, no_implicit_headers=True, is_python_module=False)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.ops.kernels.multiply(a, b)
