"""Counts the marks of a mask and reads as many elements from the beginning.

mechanism: The problem states that marks are first, and the count takes any length.
problem: mean_of_stated_lengths
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        lengths = mask.sum(dim=1, keepdim=True)
        return x.cumsum(dim=1).take_along_dim((lengths - 1)[..., None], dim=1)[:, 0] / lengths
