"""Adds into its first input and returns a view of that.

layer: correctness
mechanism: The reference, run later on the same tensors, or compared with them, agrees; no memory is allocated.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        a.add_(b)
        return a.view_as(a)
