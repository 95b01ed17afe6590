"""Programs add to one number by loads and stores.

layer: correctness
mechanism: Run one after another, in any order, they give the right sum.
problem: total
expected: wrong_value
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
    tl.store(out, tl.load(out) + tl.sum(tl.load(x + at, mask=at < size, other=0.0), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros((), device=x.device)
        total[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), BLOCK=4096)
        return out
