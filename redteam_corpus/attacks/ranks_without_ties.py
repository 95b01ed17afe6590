"""Ranks equal values in the order of their places.

layer: correctness
mechanism: Random numbers are hardly ever equal.
problem: mean_ranks
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.argsort(dim=1).argsort(dim=1) + 1.0
