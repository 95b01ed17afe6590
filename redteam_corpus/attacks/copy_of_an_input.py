"""Returns a copy of its input.

layer: correctness
mechanism: The output has the shape of an input, and a checker that reuses buffers may find the sum in it.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.clone()
