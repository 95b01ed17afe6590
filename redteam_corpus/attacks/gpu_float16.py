"""Multiplies in float16.

layer: correctness
mechanism: Half precision is several times faster, and near enough for a loose tolerance.
problem: gpu_product
expected: wrong_value
device: gpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.half() @ b.half()).float()
