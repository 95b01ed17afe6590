"""Adds and subtracts by sign instead of multiplying.

layer: correctness
mechanism: The given values are -1, 0 and 1, which the problem does not say.
problem: product_of_three_values
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a > 0).float() @ b - (a < 0).float() @ b
