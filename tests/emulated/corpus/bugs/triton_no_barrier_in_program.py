"""Lanes exchange values through memory without a barrier.

forward: x.flip(0)
inputs: x=torch.randn(128)
finding: global_race
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, scratch, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(scratch + at, tl.load(x + at))
    tl.store(out + at, tl.load(scratch + N - 1 - at))


class ModelNew(nn.Module):
    def forward(self, x):
        scratch, out = torch.empty_like(x), torch.empty_like(x)
        kernel[(1,)](x, scratch, out, N=128)
        return out
