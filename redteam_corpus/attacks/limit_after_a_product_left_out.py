"""Leaves out a limit of values in between.

layer: correctness
mechanism: With the given inputs and weights no value reaches the limit.
problem: limited_product
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x) * 2.0
