"""Divides by the offset, which gives NaN for none.

layer: correctness
mechanism: Random offsets are not zero.
problem: gate_of_sinc
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, values, offsets):
        angles = torch.pi * offsets
        return values * (torch.sin(angles) / angles)
