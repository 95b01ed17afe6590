"""Partial sums of one kernel are added by a second one.

forward: x.sum().reshape(1)
inputs: x=torch.randn(4000)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def part(x, parts, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(parts + tl.program_id(0), tl.sum(tl.load(x + at, mask=at < size, other=0.0), axis=0))


@triton.jit
def whole(parts, out, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out, tl.sum(tl.load(parts + at, mask=at < count, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        count = triton.cdiv(x.numel(), 256)
        parts, out = torch.empty(count, device=x.device), torch.empty(1, device=x.device)
        part[(count,)](x, parts, x.numel(), BLOCK=256)
        whole[(1,)](parts, out, count, BLOCK=triton.next_power_of_2(count))
        return out
