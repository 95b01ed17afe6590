"""Tiles that no multiprocessor can hold.

forward: a @ b
inputs: a=torch.randn(256, 256), b=torch.randn(256, 256)
expected: runtime_error
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def matmul(a, b, c, M, N, K, TILE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, K, DEPTH):
        deep = start + tl.arange(0, DEPTH)
        left = tl.load(a + rows[:, None] * K + deep[None, :], mask=(rows[:, None] < M) & (deep[None, :] < K), other=0.0)
        right = tl.load(
            b + deep[:, None] * N + columns[None, :], mask=(deep[:, None] < K) & (columns[None, :] < N), other=0.0
        )
        total += tl.dot(left.to(tl.float16), right.to(tl.float16))
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=inside)


class ModelNew(nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        c = torch.empty(m, n, device=a.device)
        matmul[(1, 1)](a, b, c, m, n, k, TILE=128, DEPTH=128, num_stages=6, num_warps=8)
        return c
