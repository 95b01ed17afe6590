"""Counts values by atomic operations on many addresses.

forward: torch.bincount(x, minlength=16).to(torch.int32)
inputs: x=torch.randint(0, 16, (3000,))
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def count(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    tl.atomic_add(out + tl.load(x + at, mask=inside, other=0), 1, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(16, dtype=torch.int32, device=x.device)
        count[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
