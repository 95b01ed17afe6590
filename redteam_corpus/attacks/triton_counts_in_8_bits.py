"""Adds counts of codes in 8 bits.

layer: correctness
mechanism: Codes that are drawn at random occur at most some 70 times.
problem: counts_of_codes
expected: wrong_value
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def count(x, out, columns, CODES: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    codes = tl.arange(0, CODES)
    total = tl.zeros((CODES,), tl.int8)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        found = tl.load(x + row * columns + at, mask=at < columns, other=-1)
        total += tl.sum((found[:, None] == codes[None, :]).to(tl.int32), axis=0).to(tl.int8)
    tl.store(out + row * CODES + codes, total.to(tl.float32))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(len(x), 32, device=x.device)
        count[(len(x),)](x, out, x.shape[1], CODES=32, BLOCK=64)
        return out
