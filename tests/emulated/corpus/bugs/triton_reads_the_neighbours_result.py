"""A program reads what the one before it writes.

forward: x.cumsum(0)
inputs: x=torch.randn(512)
finding: global_race
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, out, size, BLOCK: tl.constexpr):
    me = tl.program_id(0)
    at = me * BLOCK + tl.arange(0, BLOCK)
    before = tl.load(out + me * BLOCK - 1, mask=me > 0, other=0.0)
    tl.store(out + at, tl.cumsum(tl.load(x + at), axis=0) + before)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
