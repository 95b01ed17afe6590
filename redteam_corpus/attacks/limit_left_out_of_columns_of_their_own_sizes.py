"""Leaves out limits that no given value reaches.

layer: correctness
mechanism: Values that are made of two draws each kept their sizes.
problem: limited_columns_of_their_own_sizes
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2.0
