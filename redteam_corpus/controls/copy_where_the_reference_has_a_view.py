"""Copies what the reference returns as a view.

mechanism: Other strides than the reference's.
problem: transposed
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.t().contiguous()
