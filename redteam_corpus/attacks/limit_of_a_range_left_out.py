"""Leaves out a limit far beyond the given values.

layer: correctness
mechanism: Given values are near zero, but the problem states a range beyond the limit.
problem: limited_to_a_range
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2
