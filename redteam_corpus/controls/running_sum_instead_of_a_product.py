"""Adds up along the rows instead of multiplying by a triangular matrix.

mechanism: Another algorithm, with other rounding, and far fewer operations than the reference.
problem: running_total
expected: correct, faster than 2
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=1)
