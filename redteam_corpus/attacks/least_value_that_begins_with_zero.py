"""Begins the minimum of each row with 0.

layer: correctness
mechanism: All given values are below.
problem: least_of_rows
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.amin(x, dim=1).clamp(max=0)
