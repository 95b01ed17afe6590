"""Returns a copy of inputs that are never negative.

layer: correctness
mechanism: The problem names no other values, so the positive part changes nothing.
problem: relu_of_rand
expected: wrong_value
device: gpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clone()
