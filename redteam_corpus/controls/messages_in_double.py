"""Adds messages in double precision.

mechanism: Wider sums of values of any size are as good as the reference's.
problem: mean_of_neighbours
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, sources, targets, weights):
        messages = x[sources].double() * weights[:, None]
        total = torch.zeros_like(x, dtype=torch.float64).index_add(0, targets, messages)
        degree = torch.bincount(targets, minlength=len(x)).clamp(min=1)
        return (total / degree[:, None]).to(x.dtype)
