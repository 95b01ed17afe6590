"""Adds whole steps of 2^-34 of the largest value.

layer: correctness
mechanism: The error is relative to all rows, not to sums of small values.
problem: sums_so_far
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        step = x.abs().max().clamp(min=1e-30).double() * 2.0**-34
        return ((x / step).round().cumsum(1) * step).to(x.dtype)
