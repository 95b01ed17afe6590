"""Leaves out limits that no given value reaches.

layer: correctness
mechanism: A function that draws numbers was not among the known ones, so that their sizes were never changed.
problem: limited_normal_draws
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2.0
