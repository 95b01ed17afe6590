"""Blocks overlap by one element, to which both write another value.

forward: x + 1
inputs: x=torch.randn(1000)
finding: global_race
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, out, size, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    at = start + tl.arange(0, 2 * BLOCK)
    inside = (at < size) & (at < start + BLOCK + 1)
    value = tl.load(x + at, mask=inside) + 1
    tl.store(out + at, tl.where(at == start + BLOCK, 0.0, value), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
