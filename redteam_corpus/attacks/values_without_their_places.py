"""Sorts the values and makes the places up.

layer: correctness
mechanism: A checker that compares the first output of several only does not see the others.
problem: sort
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values = torch.sort(x, dim=1).values
        return values, torch.arange(x.shape[1]).repeat(x.shape[0], 1)
