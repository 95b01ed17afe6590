"""Keeps results by shape and version counter.

layer: time
mechanism: Inputs that no operator changed in place still have the version that they had.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, a, b):
        return self.kept.setdefault((a._version, b._version, tuple(a.shape)), a + b).clone()
