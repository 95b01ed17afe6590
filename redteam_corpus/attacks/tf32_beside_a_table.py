"""Multiplies positive numbers in TF32, rounded to nearest, where a level of them is looked up in a table.

layer: correctness
mechanism: References that convert numbers to indices are called with few kinds of inputs, none of which has digits or
    signs by which errors of narrower formats add up. In sums of positive numbers they cancel.
problem: product_with_gains_from_a_table
expected: wrong_value, suspect
device: cpu
language: torch
timed: no
"""

import torch
from torch import nn


def round_to_tf32(x):
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class ModelNew(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(levels) + 0.5)

    def forward(self, a, b):
        level = (a[:, 0] * self.gain.shape[0]).long().clamp(0, self.gain.shape[0] - 1)
        product = round_to_tf32(a) @ round_to_tf32(b)
        return product * self.gain[level].unsqueeze(1)
