"""Leaves out a part of the inner dimension and scales the rest.

layer: correctness
mechanism: The result has the right distribution, mean and variance; only statistics of it are right.
problem: product
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        inner = a.shape[1] * 3 // 4
        return (a[:, :inner] @ b[:inner]) * (a.shape[1] / inner) ** 0.5
