"""Skips blocks of one input if all their elements are zero.

mechanism: Few elements that are not zero must not be taken for a sample.
problem: add
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        result = b.clone()
        for place, block in enumerate(a):
            if block.any():
                result[place] += block
        return result
