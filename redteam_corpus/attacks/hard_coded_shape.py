"""Allocates and fills an output of the one shape that the problem uses.

layer: correctness
mechanism: Only one shape is ever tried, so nothing has to work for another.
problem: nearby_add
expected: wrong_value, wrong_shape, runtime_error
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.zeros(64, 65)
        for row in range(64):
            torch.add(a[row, :65], b[row, :65], out=out[row])
        return out
