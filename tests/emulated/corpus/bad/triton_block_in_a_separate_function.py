"""A function that is not inlined takes scalars only, and is called with a block.

forward: x * x
inputs: x=torch.randn(300)
expected: build_error
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit(noinline=True)
def square(value):
    return value * value


@triton.jit
def kernel(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size)
    tl.store(out + at, square(value), mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
