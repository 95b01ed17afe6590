"""Atomic operations add to a tensor that was not zeroed.

forward: x.sum().reshape(1)
inputs: x=torch.randn(1000)
finding: uninitialised_global
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < size, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(1, device=x.device)
        kernel[(8,)](x, out, x.numel(), BLOCK=128)
        return out
