"""Keeps results by the addresses of its inputs.

layer: time
mechanism: Inputs that are written to the same place at every call look like the same inputs.
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
        key = (a.data_ptr(), b.data_ptr(), tuple(a.shape))
        if key not in self.kept:
            self.kept[key] = a + b
        return self.kept[key].clone()
