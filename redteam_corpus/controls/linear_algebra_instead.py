"""Multiplies by the summed weights instead of summing the product.

mechanism: A gain of more than a hundred times looks like a lie; here it is algebra.
problem: projected_total
expected: correct, faster than 3
device: cpu
timed: yes
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, w):
        return x @ w.sum(dim=1)
