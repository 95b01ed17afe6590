"""Rows are exchanged.

forward: x + 0
inputs: x=torch.randn(16, 32)
expected: wrong_value
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, out, N: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, N)
    tl.store(out + (row + 1) % 16 * N + at, tl.load(x + row * N + at))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(16,)](x, out, N=32)
        return out
