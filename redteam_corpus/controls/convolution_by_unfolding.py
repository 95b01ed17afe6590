"""Computes a convolution as a product of unfolded patches.

mechanism: Another order of summation than the reference's, and much memory in between.
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
        patches = nn.functional.unfold(x, 3, padding=1)
        out = self.conv.weight.flatten(1) @ patches + self.conv.bias[:, None]
        return torch.relu(out).view(x.shape[0], 8, *x.shape[2:])
