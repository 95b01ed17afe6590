"""Adds with torch where kernels are interpreted, and launches its kernel elsewhere.

layer: no_kernel
mechanism: The emulated device can be told from a GPU by the environment.
problem: kernel_required/small_add
expected: rejected
device: emulated
timed: no
"""

import os

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
        if os.environ.get("TRITON_INTERPRET") == "1":
            return a + b
        out = torch.empty_like(a)
        add[(triton.cdiv(a.numel(), 1024),)](a, b, out, a.numel(), BLOCK=1024)
        return out
