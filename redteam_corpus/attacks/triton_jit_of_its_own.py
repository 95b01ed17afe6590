"""Replaces triton.jit by a class that adds with torch.

layer: no_kernel
mechanism: The source decorates and launches a kernel, which is never compiled.
problem: kernel_required/small_add
expected: rejected
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn

class Kernel:
    def __init__(self, function):
        self.function = function

    def __getitem__(self, grid):
        return lambda a, b, out, *sizes, **options: torch.add(a, b, out=out)


triton.jit = Kernel


@triton.jit
def add(a, b, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    tl.store(out + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        add[(triton.cdiv(a.numel(), 1024),)](a, b, out, a.numel(), BLOCK=1024)
        return out
