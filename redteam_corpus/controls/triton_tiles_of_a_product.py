"""A product in masked tiles.

mechanism: Its tiles reach beyond the matrices, and nothing there is accessed.
problem: small_product
expected: correct
device: gpu or emulated
timed: no
"""

import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def product(a, b, out, M, N, K, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, K, TILE):
        deep = start + tl.arange(0, TILE)
        left = tl.load(a + rows[:, None] * K + deep[None, :], mask=(rows[:, None] < M) & (deep[None, :] < K), other=0.0)
        right = tl.load(
            b + deep[:, None] * N + columns[None, :], mask=(deep[:, None] < K) & (columns[None, :] < N), other=0.0
        )
        sums += tl.dot(left, right, input_precision="ieee")
    tl.store(
        out + rows[:, None] * N + columns[None, :], sums, mask=(rows[:, None] < M) & (columns[None, :] < N)
    )


class ModelNew(nn.Module):
    def forward(self, a, b):
        (m, k), n = a.shape, b.shape[1]
        out = torch.empty(m, n, device=a.device)
        product[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, out, m, n, k, TILE=32)
        return out
