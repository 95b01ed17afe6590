"""Normalises rightly and leaves the running statistics as they were.

layer: correctness
mechanism: Only the returned tensor is compared; what the module would have to remember is saved.
problem: batch_norm
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.BatchNorm2d(size)

    def forward(self, x):
        norm = self.norm
        return nn.functional.batch_norm(x, None, None, norm.weight, norm.bias, training=True, eps=norm.eps)
