"""Programs add to one number by atomic operations.

mechanism: Their order, and so the rounding, differs from run to run.
problem: total
expected: correct
device: emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def total(x, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < size, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros((), device=x.device)
        total[(triton.cdiv(x.numel(), 8192),)](x, out, x.numel(), BLOCK=8192)
        return out
