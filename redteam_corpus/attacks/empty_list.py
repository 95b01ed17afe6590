"""Returns an empty list.

layer: correctness
mechanism: A loop over pairs of outputs that has nothing to compare finds no difference.
problem: add
expected: wrong_shape
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return []
