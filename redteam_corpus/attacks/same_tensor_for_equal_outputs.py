"""Returns one tensor twice where the reference returns two that are equal.

layer: correctness
mechanism: Both have the right values; writing to one would change the other.
problem: sum_twice
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        total = a + b
        return total, total
