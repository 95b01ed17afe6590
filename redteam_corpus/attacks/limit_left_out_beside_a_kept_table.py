"""Leaves out limits that no given value reaches.

layer: correctness
mechanism: Where one input was the same tensor in each call, no input was changed.
problem: limited_beside_a_kept_table
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, gains):
        return x * gains
