"""Divides by offsets that are not zero.

mechanism: Gradients of what is replaced are zero.
problem: gate_of_sinc
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, values, offsets):
        is_zero = offsets == 0
        angles = torch.pi * torch.where(is_zero, 1.0, offsets)
        return values * torch.where(is_zero, 1.0, torch.sin(angles) / angles)
