"""Computes in channels-last layout and returns it so.

mechanism: The result has other strides than the reference's; the values are right.
problem: convolution
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.conv = nn.Conv2d(size, 8, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(x.to(memory_format=torch.channels_last)))
