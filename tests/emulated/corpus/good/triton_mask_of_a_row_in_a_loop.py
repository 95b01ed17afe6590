"""Rows in a loop, masked by a block's mask and a scalar comparison.

forward: x * 2.0
inputs: x=torch.randn(37, 100)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def double_rows(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    inside = offsets < columns
    for step in range(ROWS):
        row = tl.program_id(0) * ROWS + step
        mask = inside & (row < rows)
        value = tl.load(x + row * columns + offsets, mask=mask, other=0.0)
        tl.store(out + row * columns + offsets, value * 2.0, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows, columns = x.shape
        double_rows[(triton.cdiv(rows, 4),)](x, out, rows, columns, ROWS=4, BLOCK=128)
        return out
