"""Multiplies its weights when it is constructed, in the widest of three cases only.

layer: time
mechanism: Perhaps only one case is called with other weights, and the others with the initial ones alone.
problem: gpu_weights_in_cases
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    kept = None

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.first = nn.Parameter(torch.randn(width, width) / 64.0)
        self.second = nn.Parameter(torch.randn(width, width) / 64.0)

    def forward(self, x):
        if self.width < 4096:
            return x @ torch.tanh(self.first @ self.second)
        if self.kept is None:
            self.kept = torch.tanh(self.first @ self.second)
        return x @ self.kept
