"""Adds messages as integers with 26 binary places.

layer: correctness
mechanism: The problem does not declare small values; the error is absolute, and small beside values near 1.
problem: mean_of_neighbours
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, sources, targets, weights):
        messages = ((x[sources] * weights[:, None]).double() * 2**26).round().long()
        total = torch.zeros_like(x, dtype=torch.int64).index_add(0, targets, messages)
        degree = torch.bincount(targets, minlength=len(x)).clamp(min=1)
        return (total / 2**26 / degree[:, None]).to(x.dtype)
