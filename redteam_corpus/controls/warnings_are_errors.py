"""Turns warnings into errors.

mechanism: The evaluator's own program runs in the same process, and may warn.
problem: linear_relu
expected: correct
device: cpu
timed: no
"""

import warnings

import torch
from torch import nn

warnings.simplefilter("error")


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return torch.relu(self.linear(x))
