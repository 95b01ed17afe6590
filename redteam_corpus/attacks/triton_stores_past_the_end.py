"""Writes whole blocks, beyond the end of its output.

layer: correctness
mechanism: The values are right, and the interpreter itself writes anywhere.
problem: add
expected: runtime_error
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
    tl.store(out + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside))


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        add[(triton.cdiv(a.numel(), 1024),)](a, b, out, a.numel(), BLOCK=1024)
        return out
