"""Calls at::mm inside its extension.

layer: no_kernel
mechanism: The work is done by torch all the same, behind a function of the candidate's own.
problem: kernel_required/product
expected: rejected, not_own
device: cpu
timed: no
"""

from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
torch::Tensor product(torch::Tensor a, torch::Tensor b) { return at::mm(a, b); }
"""
library = load_inline(name="wrapped", cpp_sources=SOURCE, functions=["product"])


class ModelNew(nn.Module):
    def forward(self, a, b):
        return library.product(a, b)
