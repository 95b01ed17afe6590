"""Defines a kernel and adds with torch.

layer: no_kernel
mechanism: The source has a kernel with the right name and the values are right.
problem: kernel_required/small_add
expected: rejected
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def add(a, b, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    tl.store(out + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
