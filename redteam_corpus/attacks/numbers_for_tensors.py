"""Returns a Python number where a tensor is expected.

layer: correctness
mechanism: A number compares with a tensor of one element without an error.
problem: total
expected: wrong_shape
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return float(x.sum())
