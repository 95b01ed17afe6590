"""Adds in blocks into one buffer, which every call returns.

mechanism: Whoever keeps an output sees it change with the next call, which the problem does not forbid.
problem: kernel_required/small_add
expected: correct
device: gpu or emulated
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


class ModelNew(nn.Module):
    buffer = None

    def forward(self, a, b):
        if self.buffer is None or self.buffer.shape != a.shape:
            self.buffer = torch.empty_like(a)
        add[(triton.cdiv(a.numel(), 1024),)](a, b, self.buffer, a.numel(), BLOCK=1024)
        return self.buffer
