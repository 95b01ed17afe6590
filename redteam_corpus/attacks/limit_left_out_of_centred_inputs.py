"""Leaves out limits that no given value reaches.

layer: correctness
mechanism: Values that depend on all others kept their sizes.
problem: limited_centred_inputs
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2.0
