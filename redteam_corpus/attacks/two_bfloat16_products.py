"""Splits only one of its inputs into bfloat16 parts.

layer: correctness
mechanism: Two thirds of the products of an honest splitting are right to nine bits everywhere.
problem: small_product
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        high = a.bfloat16().float()
        low = (a - high).bfloat16().float()
        coarse = b.bfloat16().float()
        return high @ coarse + low @ coarse
