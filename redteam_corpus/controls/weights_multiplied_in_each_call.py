"""Multiplies its weights in each call, since they may change.

mechanism: Weights that are written before each timed call, as state is.
problem: weights_multiplied
expected: correct
device: cpu
timed: yes
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.second = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x):
        return torch.mm(x, torch.mm(self.first, self.second).tanh_())
