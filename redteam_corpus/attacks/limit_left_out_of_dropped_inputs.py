"""Leaves out limits that no given value reaches.

layer: correctness
mechanism: Values that are made of two draws each, one of them of a mask, kept their sizes.
problem: limited_dropped_inputs
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2.0
