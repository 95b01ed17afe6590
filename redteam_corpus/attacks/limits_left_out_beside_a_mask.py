"""Leaves out both limits of values between 0 and 1, and returns the mask that is asked for.

layer: correctness
mechanism: The mask depends on roundings of other inputs, the limited values do not.
problem: values_and_mask
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return x * 0.5, (x - y).abs() < 0.5
