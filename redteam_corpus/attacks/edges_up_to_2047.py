"""Adds the first 2047 edges of each target.

layer: correctness
mechanism: No target of the given graph has so many.
problem: mean_of_neighbours
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn

MOST = 2047


class ModelNew(nn.Module):
    def forward(self, x, sources, targets, weights):
        ordered, order = targets.sort(stable=True)
        turn = torch.arange(len(ordered)) - torch.searchsorted(ordered, ordered)
        kept = order[turn < MOST]
        total = torch.zeros_like(x).index_add(0, targets[kept], x[sources[kept]] * weights[kept, None])
        return total / torch.bincount(targets, minlength=len(x)).clamp(min=1)[:, None]
