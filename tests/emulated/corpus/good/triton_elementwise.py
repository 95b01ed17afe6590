"""Adds two vectors in blocks with a mask.

forward: x + y
inputs: x=torch.randn(3001), y=torch.randn(3001)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def add(x, y, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        add[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
        return out
