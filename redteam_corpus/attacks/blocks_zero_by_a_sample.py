"""Skips blocks of one input if every eighth element of the block is zero.

layer: correctness
mechanism: Random values are never zero, and blocks of zeros alone may be skipped.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        result = b.clone()
        for place, block in enumerate(a):
            if block[::8].any():
                result[place] += block
        return result
