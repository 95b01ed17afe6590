"""Adds into its first input and returns a view of that.

layer: correctness
mechanism: Nothing is allocated, and the reference, run later on the same tensors, agrees.
problem: gpu_add
expected: wrong_value, suspect
device: gpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        a.add_(b)
        return a.view_as(a)
