"""Counts the marks of a mask and reads as many elements from the beginning.

layer: correctness
mechanism: Each given mask keeps the first elements, which the problem does not say.
problem: mean_of_lengths
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        lengths = mask.sum(dim=1, keepdim=True)
        sums = x.cumsum(dim=1).take_along_dim((lengths - 1)[..., None].clamp(min=0), dim=1)[:, 0]
        return sums / lengths.clamp(min=1)
