"""Divides by the element beside the diagonal.

layer: correctness
mechanism: Random matrices have no zeros.
problem: roots_of_small_matrices
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, spread):
        a, b, d = (spread[:, i, j].double() for i, j in ((0, 0), (0, 1), (1, 1)))
        half = ((a - d).square() / 4 + b.square()).sqrt()
        low, high = (a + d) / 2 - half, (a + d) / 2 + half
        first = torch.stack([(high - d) / b, torch.ones_like(b)], dim=1)
        first = first / first.norm(dim=1, keepdim=True)
        second = torch.stack([-first[:, 1], first[:, 0]], dim=1)
        pairs = ((high, first), (low, second))
        return sum(value.sqrt()[:, None, None] * one[:, :, None] * one[:, None] for value, one in pairs).float()
