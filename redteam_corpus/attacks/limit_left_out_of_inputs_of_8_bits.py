"""Leaves out limits that no given value reaches.

layer: correctness
mechanism: Floats of 8 bits were not among the types whose values change.
problem: limited_inputs_of_8_bits
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.float() * 2.0
