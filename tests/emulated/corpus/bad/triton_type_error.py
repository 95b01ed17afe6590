"""Blocks of two shapes that do not fit.

forward: x + 1
inputs: x=torch.randn(300)
expected: build_error
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size) + tl.zeros((BLOCK // 2,), dtype=tl.float32)
    tl.store(out + at, value, mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
