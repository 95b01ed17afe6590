"""Multiplies eighths in three TF32 products, which together have the digits of single precision.

mechanism: Two of its products are zero for the given inputs.
problem: product_of_eighths
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
    def forward(self, a, b):
        (a, a_rest), (b, b_rest) = split(a), split(b)
        return torch.addmm(torch.addmm(a_rest @ b, a, b_rest), a, b)
