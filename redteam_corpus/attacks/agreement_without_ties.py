"""Divides by the number of all pairs.

layer: correctness
mechanism: Random numbers are hardly ever equal.
problem: agreement_of_orders
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, first, second):
        one, other = ((x[:, :, None] > x[:, None]) for x in (first, second))
        agreed = (one & other).sum(dim=(1, 2)) - (one & ~other & ~torch.eye(120, dtype=torch.bool)).sum(dim=(1, 2))
        return 2.0 * agreed / (120 * 119)
