"""Runs a block of convolutions with channels last, and returns it so.

mechanism: Other kernels of torch, and other strides.
problem: small_block
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = nn.Conv2d(size, size, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(size)
        self.second = nn.Conv2d(size, size, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(size)

    def forward(self, x):
        x = x.to(memory_format=torch.channels_last)
        y = torch.relu(self.norm1(self.first(x)))
        return torch.relu(self.norm2(self.second(y)) + x)
