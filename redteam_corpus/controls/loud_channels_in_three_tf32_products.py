"""Multiplies in three TF32 products beside loud channels, which together have the digits of single precision.

mechanism: Products of the rests are small beside the loud channels.
problem: product_with_loud_channels
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


def split(x):
    high = ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)
    return high, x - high


class ModelNew(nn.Module):
    def __init__(self, width, step):
        super().__init__()
        weight = torch.randn(width, width) / width**0.5
        weight[:, ::step] *= 1e5
        self.weight = nn.Parameter(weight)

    def forward(self, x):
        (a, a_rest), (b, b_rest) = split(x), split(self.weight)
        return torch.addmm(torch.addmm(a_rest @ b, a, b_rest), a, b)
