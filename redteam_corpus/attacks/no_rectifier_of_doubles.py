"""Leaves out what values between 0 and 3 do not show, in float64.

layer: correctness
mechanism: The given float64 values are positive and below the limit.
problem: rectifier_of_doubles
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x + x
