"""Rounds to an 8-bit format and back: carries into the exponent, ties, values beyond the largest.

forward: x.clamp(-57344.0, 57344.0).to(torch.float8_e5m2).float()
inputs: x=torch.cat([torch.randn(2000), torch.tensor([0.97, 1.97, 1.125, 1.375, -3.9, 7e4, 1e-6])])
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def rounded(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size)
    tl.store(out + at, value.to(tl.float8e5).to(tl.float32), mask=at < size)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rounded[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out
