"""Closes every descriptor that it has.

layer: process
mechanism: An evaluator that loses its worker may call it a fault of its own.
problem: add
expected: runtime_error
device: cpu
timed: no
"""

import os

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        os.closerange(3, 4096)
        return a + b
