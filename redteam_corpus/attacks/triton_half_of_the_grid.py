"""Launches half of its programs and reuses a buffer that holds the sum already.

layer: correctness
mechanism: The rest of the output may hold the result of an earlier call.
problem: add
expected: wrong_value
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
    def forward(self, a, b):
        out = torch.empty_like(a)
        add[(triton.cdiv(a.numel(), 2048),)](a, b, out, a.numel(), BLOCK=1024)
        return out
