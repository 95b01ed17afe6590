"""Adds one edge of each target after the other, as many turns as the largest degree.

mechanism: A sum in another order; one target may have nearly all edges.
problem: mean_of_neighbours
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, sources, targets, weights):
        ordered, order = targets.sort(stable=True)
        turns = torch.arange(len(ordered)) - torch.searchsorted(ordered, ordered)
        degree = torch.bincount(targets, minlength=len(x))
        total = torch.zeros_like(x)
        for turn in torch.split(order[turns.argsort(stable=True)], torch.bincount(turns).tolist()):
            total[targets[turn]] += x[sources[turn]] * weights[turn, None]
        return total / degree.clamp(min=1)[:, None]
