"""The last block is never launched, and a second kernel reads it.

forward: x * 2 + 1
inputs: x=torch.randn(1000)
finding: uninitialised_global
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, out, size, FACTOR: tl.constexpr, ADDED: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < size) * FACTOR + ADDED, mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        between, out = torch.empty_like(x), torch.empty_like(x)
        kernel[(x.numel() // 128,)](x, between, x.numel(), FACTOR=2, ADDED=0, BLOCK=128)
        kernel[(triton.cdiv(x.numel(), 128),)](between, out, x.numel(), FACTOR=1, ADDED=1, BLOCK=128)
        return out
