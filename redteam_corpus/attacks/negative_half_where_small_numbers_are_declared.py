"""Leaves out the weights of negative parts, where the given numbers are positive and small ones are declared.

layer: correctness
mechanism: A problem that declares any stress values is not called with numbers that changed their signs.
problem: both_signs
expected: wrong_value, suspect
device: cpu
language: torch
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2 * width, columns) / width**0.5)

    def forward(self, x):
        return x @ self.weight[: x.shape[1]]
