"""Adds rows that are turned round, so that every row's sum, norm and set of terms looks right.

layer: correctness
mechanism: A checksum of outputs is not the outputs.
problem: gpu_add
expected: wrong_value
device: gpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a + b).flip(1)
