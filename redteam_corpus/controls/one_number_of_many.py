"""Adds everything up in blocks.

mechanism: A sum in another order has other last digits.
problem: total
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=1).sum()
