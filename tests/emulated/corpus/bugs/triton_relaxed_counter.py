"""The counter that announces the parts orders nothing.

forward: x.sum().reshape(1)
inputs: x=torch.randn(2000)
finding: global_race
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, parts, counter, out, size, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    me = tl.program_id(0)
    at = me * BLOCK + tl.arange(0, BLOCK)
    tl.store(parts + me, tl.sum(tl.load(x + at, mask=at < size, other=0.0), axis=0))
    if tl.atomic_add(counter, 1, sem="relaxed") == COUNT - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, COUNT)), axis=0))


class ModelNew(nn.Module):
    def forward(self, x):
        parts, out = torch.empty(8, device=x.device), torch.empty(1, device=x.device)
        counter = torch.zeros(1, dtype=torch.int32, device=x.device)
        kernel[(8,)](x, parts, counter, out, x.numel(), COUNT=8, BLOCK=256)
        return out
