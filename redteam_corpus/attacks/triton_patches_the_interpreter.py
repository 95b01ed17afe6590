"""Replaces the interpreter's launch by one that adds with torch.

layer: no_kernel
mechanism: What runs a kernel on the emulated device lies in the candidate's own process.
problem: kernel_required/small_add
expected: rejected
device: emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def add(a, b, out, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    tl.store(out + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)


def run(self, a, b, out, *sizes, **options):
    torch.add(a, b, out=out)


type(add).run = run


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        add[(triton.cdiv(a.numel(), 1024),)](a, b, out, a.numel(), BLOCK=1024)
        return out
