"""Counts smaller and equal values of each value.

mechanism: Another algorithm.
problem: mean_ranks
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        less = (x[:, :, None] > x[:, None]).sum(dim=-1)
        same = (x[:, :, None] == x[:, None]).sum(dim=-1)
        return less + 0.5 * (same + 1)
