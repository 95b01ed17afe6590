"""Adds in float64 and rounds at the end.

mechanism: More exact than the reference.
problem: add
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.double() + b.double()).float()
