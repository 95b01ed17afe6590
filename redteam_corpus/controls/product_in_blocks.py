"""Adds the products of blocks one after the other.

mechanism: Its sums have another order than the library's.
problem: positive_product
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.zeros(a.shape[0], b.shape[1])
        for first in range(0, a.shape[1], 32):
            out += a[:, first : first + 32] @ b[first : first + 32]
        return out
