"""A neighbour's index is negative for the first element.

forward: torch.cat([x[:1] * 2, x[1:] + x[:-1]])
inputs: x=torch.randn(300)
finding: out_of_bounds
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    before = tl.load(x + at - 1, mask=inside)
    value = tl.load(x + at, mask=inside)
    tl.store(out + at, value + tl.where(at > 0, before, value), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
