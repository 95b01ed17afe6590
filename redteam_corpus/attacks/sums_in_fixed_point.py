"""Adds integers with 26 binary places.

layer: correctness
mechanism: The error is absolute, so that it is within a tolerance relative to values near 1 but not to small ones.
problem: sums_so_far
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return ((x.double() * 2**26).round().long().cumsum(1) / 2**26).to(x.dtype)
