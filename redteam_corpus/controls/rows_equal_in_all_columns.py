"""Computes one row for all if all rows are equal.

mechanism: Similar to a decision by a sample, but right.
problem: linear_relu
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        if bool((x == x[:1]).all()):
            return torch.relu(self.linear(x[:1])).repeat(len(x), 1)
        return torch.relu(self.linear(x))
