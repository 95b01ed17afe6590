"""Adds in a kernel of Triton's.

mechanism: Compiled by Python in the first call; it needs a compiler and a cache folder there.
problem: gpu_add
expected: correct
device: gpu
timed: yes
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def add(a, b, out, count, size: tl.constexpr):
    places = tl.program_id(0) * size + tl.arange(0, size)
    inside = places < count
    tl.store(out + places, tl.load(a + places, mask=inside) + tl.load(b + places, mask=inside), mask=inside)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        add[(triton.cdiv(out.numel(), 2048),)](a, b, out, out.numel(), 2048)
        return out
