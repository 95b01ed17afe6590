"""Branches on constants, device functions and optional arguments.

forward: torch.where(x > 0, x, 0.1 * x) + b
inputs: x=torch.randn(700), b=torch.randn(700)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def activate(value, KIND: tl.constexpr):
    if KIND == "relu":
        return tl.maximum(value, 0.0)
    if KIND == "leaky":
        return tl.where(value > 0, value, 0.1 * value)
    return value


@triton.jit
def run(x, bias, out, size, KIND: tl.constexpr, HAS_BIAS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    value = activate(tl.load(x + at, mask=inside), KIND)
    if HAS_BIAS:
        value += tl.load(bias + at, mask=inside)
    tl.store(out + at, value, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, b):
        between, out = torch.empty_like(x), torch.empty_like(x)
        run[(7,)](x, b, out, x.numel(), KIND="leaky", HAS_BIAS=True, BLOCK=128)
        run[(7,)](out, None, between, x.numel(), KIND="none", HAS_BIAS=False, BLOCK=128)
        return between
