"""Skips a branch that a gate multiplies by zero.

layer: correctness
mechanism: The gate is zero when the module is new; the branch costs all the time.
problem: gated_branch
expected: wrong_value
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.branch = nn.Linear(size, size)
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x.clone()
