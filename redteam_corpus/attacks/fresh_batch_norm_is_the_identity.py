"""Leaves out a batch normalisation.

layer: correctness
mechanism: Its statistics and weights are zeros and ones, so it divides by nearly one.
problem: fresh_batch_norm
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.convolution = nn.Conv2d(3, size, 3)
        self.norm = nn.BatchNorm2d(size)

    def forward(self, x):
        return torch.relu(self.convolution(x))
