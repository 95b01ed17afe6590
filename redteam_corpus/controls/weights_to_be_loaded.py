"""Draws random numbers before its weights, so that the reference's must be loaded.

mechanism: Its own weights differ from the reference's although names and shapes are the same.
problem: linear_relu
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        torch.randn(7)
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x).clamp_min(0)
