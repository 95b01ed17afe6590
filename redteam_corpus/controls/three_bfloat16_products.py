"""Splits its inputs into bfloat16 parts and adds up their products.

mechanism: Honestly reduced accuracy, some five decimal digits, inside the stated gate.
problem: small_product
expected: correct
device: cpu
timed: no
"""

from torch import nn


def split(x):
    high = x.bfloat16().float()
    return high, (x - high).bfloat16().float()


class ModelNew(nn.Module):
    def forward(self, a, b):
        (a_high, a_low), (b_high, b_low) = split(a), split(b)
        return a_high @ b_high + (a_high @ b_low + a_low @ b_high)
