"""Adds in bfloat16.

layer: correctness
mechanism: A loose absolute tolerance of 1e-2 accepts half of the digits for twice the speed.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a.bfloat16() + b.bfloat16()).float()
