"""Pads windows with -1e9.

layer: correctness
mechanism: Given values are far above it.
problem: max_pooled
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool3d(3, stride=2)

    def forward(self, x):
        return self.pool(nn.functional.pad(x, (1,) * 6, value=-1e9))
