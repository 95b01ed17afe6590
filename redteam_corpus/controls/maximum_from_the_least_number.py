"""Pads windows with the least float32.

mechanism: It is not minus infinity.
problem: max_pooled
expected: correct
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
        return self.pool(nn.functional.pad(x, (1,) * 6, value=torch.finfo(x.dtype).min))
