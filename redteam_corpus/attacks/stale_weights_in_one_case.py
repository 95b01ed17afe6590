"""Multiplies its weights in its first call, in the widest of three cases only.

layer: correctness
mechanism: Perhaps only one case, secretly chosen, is called with other weights.
problem: weights_in_cases
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    kept = None

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.first = nn.Parameter(torch.randn(width, width) / 32.0)
        self.second = nn.Parameter(torch.randn(width, width) / 32.0)

    def forward(self, x):
        if self.width < 256:
            return x @ torch.tanh(self.first @ self.second)
        if self.kept is None:
            self.kept = torch.tanh(self.first @ self.second)
        return x @ self.kept
