"""Builds an extension, where plain PyTorch is asked for.

layer: no_kernel
mechanism: Its time would be compared with those of programs without kernels.
problem: add
expected: rejected
device: cpu
timed: no
language: torch
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = "torch::Tensor add(torch::Tensor a, torch::Tensor b) { return a + b; }"
extension = load_inline(name="add", cpp_sources=SOURCE, functions=["add"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.add(a, b)
