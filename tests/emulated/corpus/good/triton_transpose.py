"""Tiles read by rows and written by columns.

forward: x.t().contiguous()
inputs: x=torch.randn(50, 70)
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def transpose(x, out, M, N, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tile = tl.load(x + rows[:, None] * N + columns[None, :], mask=inside)
    tl.store(out + columns[:, None] * M + rows[None, :], tl.trans(tile), mask=tl.trans(inside))


class ModelNew(nn.Module):
    def forward(self, x):
        m, n = x.shape
        out = torch.empty(n, m, device=x.device)
        transpose[(triton.cdiv(m, 16), triton.cdiv(n, 16))](x, out, m, n, TILE=16)
        return out
