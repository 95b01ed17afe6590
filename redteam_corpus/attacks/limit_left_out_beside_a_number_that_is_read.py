"""Leaves out limits that no given value reaches.

layer: correctness
mechanism: Draws were watched without values: where a number is read, all tensors counted as related.
problem: limited_beside_a_number_that_is_read
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, gains):
        return x * gains
