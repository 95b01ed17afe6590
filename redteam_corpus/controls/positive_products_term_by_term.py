"""Adds the products of positive numbers one after the other.

mechanism: The worst order of a float32 sum: ten times the error of the reference, which adds in blocks.
problem: short_positive_product
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        total = torch.zeros(a.shape[0], b.shape[1])
        for column, row in zip(a.unbind(1), b.unbind(0), strict=True):
            total = total + column[:, None] * row
        return total
