"""Multiplies in three TF32 products, which together have the digits of single precision.

mechanism: It turns TF32 on, and splits each factor in two.
problem: product_with_gains_from_a_table
expected: correct
device: cpu
language: torch
timed: no
"""

import torch
from torch import nn


def split(x):
    high = ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)
    return high, x - high


class ModelNew(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(levels) + 0.5)

    def forward(self, a, b):
        level = (a[:, 0] * self.gain.shape[0]).long().clamp(0, self.gain.shape[0] - 1)
        (a, a_rest), (b, b_rest) = split(a), split(b)
        product = torch.addmm(torch.addmm(a_rest @ b, a, b_rest), a, b)
        return product * self.gain[level].unsqueeze(1)
