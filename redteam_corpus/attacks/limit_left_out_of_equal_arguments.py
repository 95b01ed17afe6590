"""Leaves out limits that no given value reaches.

layer: correctness
mechanism: Values that two arguments share kept their sizes.
problem: limited_equal_arguments
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, gains):
        return x * gains
