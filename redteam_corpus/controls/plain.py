"""The operator itself.

mechanism: Nothing: the plainest candidate there is.
problem: add
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + b
