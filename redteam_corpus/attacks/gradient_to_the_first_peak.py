"""Gives the whole gradient of a row's maximum to the first of equal ones.

layer: correctness
mechanism: Any rounding of the inputs would decide which of them is the largest.
problem: gradient_of_peaks
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.max(dim=1).values
