"""Returns a view of its input, as the reference does.

mechanism: An output that shares memory with an input is an attack elsewhere.
problem: transposed
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.transpose(0, 1)
