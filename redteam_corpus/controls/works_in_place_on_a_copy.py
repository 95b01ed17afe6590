"""Copies an input, and works in the copy with a chain of operations in place.

mechanism: Operations in place are an attack when they change the inputs.
problem: relu
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clone().clamp_(min=0)
