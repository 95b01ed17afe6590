"""Multiplies in float16.

layer: correctness
mechanism: A loose tolerance accepts fewer digits for more speed.
problem: small_product
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.half() @ b.half()).float()
