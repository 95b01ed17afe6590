"""Leaves out tiles whose elements are all zero.

mechanism: Work that zeros save depends on the inputs, which other kinds of inputs change.
problem: product_of_stated_tiles
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn

TILE = 16


class ModelNew(nn.Module):
    def forward(self, a, b):
        tiles = a.unflatten(0, (-1, TILE)).unflatten(2, (-1, TILE))
        kept = (tiles != 0).any(3).any(1)
        out = torch.zeros(a.shape[0], b.shape[1])
        for row in range(kept.shape[0]):
            rows = slice(row * TILE, row * TILE + TILE)
            for column in kept[row].nonzero().flatten().tolist():
                columns = slice(column * TILE, column * TILE + TILE)
                out[rows] += a[rows, columns] @ b[columns]
        return out
