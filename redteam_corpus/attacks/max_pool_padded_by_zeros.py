"""Begins the maximum of each window with 0.

layer: correctness
mechanism: Of 27 random values one is nearly always positive, and zeros need no test of the border.
problem: max_pooled
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn
from torch.nn import functional


class ModelNew(nn.Module):
    def forward(self, x):
        return functional.max_pool3d(functional.pad(x, (1, 1, 1, 1, 1, 1)), 3, stride=2)
