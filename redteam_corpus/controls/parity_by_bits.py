"""Looks at the last bit instead of dividing.

mechanism: Boolean outputs, compared exactly.
problem: parity
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, numbers):
        return ((numbers & 1) == 0).logical_and(numbers > 100)
