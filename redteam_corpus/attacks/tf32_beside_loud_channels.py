"""Multiplies in TF32, and the few channels with large weights in single precision.

layer: correctness
mechanism: An element may be off by a share of the mean of its neighbours, to which elements 100,000 times as large add.
problem: product_with_loud_channels
expected: wrong_value, suspect
device: cpu
language: torch
timed: no
known_open: Fast products and transforms mix channels, so that their errors are of the size of the loud ones.
"""

import torch
from torch import nn


def round_to_tf32(x):
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class ModelNew(nn.Module):
    def __init__(self, width, step):
        super().__init__()
        weight = torch.randn(width, width) / width**0.5
        weight[:, ::step] *= 1e5
        self.weight, self.step = nn.Parameter(weight), step

    def forward(self, x):
        out = round_to_tf32(x) @ round_to_tf32(self.weight)
        out[:, :: self.step] = x @ self.weight[:, :: self.step]
        return out
