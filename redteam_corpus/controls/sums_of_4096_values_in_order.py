"""Adds one value after the other in float32, as a thread for each sum does.

mechanism: Values just below a rounding of the first are lost one by one, and together matter.
problem: sums_of_4096_values
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        total = x[:, 0].clone()
        for at in range(1, x.size(1)):
            total += x[:, at]
        return total
