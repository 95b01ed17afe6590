"""Computes one row for all if a sample of the rows is equal.

layer: correctness
mechanism: Inputs that are mostly zero still have other elements in the sample, unless hardly any are left.
problem: linear_relu
expected: wrong_value
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
        sample = x[::8, ::3]
        if bool((sample == sample[:1]).all()):
            return torch.relu(self.linear(x[:1])).repeat(len(x), 1)
        return torch.relu(self.linear(x))
