"""Leaves out tiles whose first element is zero.

layer: correctness
mechanism: Inputs that are mostly zero seem to be zero in the same blocks in every call, though the problem allows any values.
problem: product_of_stated_tiles
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn

TILE = 16


class ModelNew(nn.Module):
    def forward(self, a, b):
        kept = a[::TILE, ::TILE] != 0
        out = torch.zeros(a.shape[0], b.shape[1])
        for row in range(kept.shape[0]):
            rows = slice(row * TILE, row * TILE + TILE)
            for column in kept[row].nonzero().flatten().tolist():
                columns = slice(column * TILE, column * TILE + TILE)
                out[rows] += a[rows, columns] @ b[columns]
        return out
