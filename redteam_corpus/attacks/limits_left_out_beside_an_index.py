"""Leaves out both limits of values between 0 and 1 that are changed in place.

layer: correctness
mechanism: Inputs that are changed are outputs, one of which consists of integers.
problem: classes_in_place
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, bias, which):
        return x.add_(bias[which])
