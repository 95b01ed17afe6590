"""Rows are masked by the number of columns.

forward: x * 2
inputs: x=torch.randn(20, 50)
finding: out_of_bounds
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x, out, M, N, TILE: tl.constexpr):
    rows, columns = tl.arange(0, TILE), tl.arange(0, TILE)
    inside = (rows[:, None] < N) & (columns[None, :] < N)
    at = rows[:, None] * N + columns[None, :]
    tl.store(out + at, tl.load(x + at, mask=inside) * 2, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(1,)](x, out, x.shape[0], x.shape[1], TILE=64)
        return out
