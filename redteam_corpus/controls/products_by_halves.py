"""Multiplies neighbours until one value is left.

mechanism: Adds no rounding that the reference lacks.
problem: products_of_rows
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, rows):
        while rows.shape[1] > 1:
            rows = rows[:, ::2] * rows[:, 1::2]
        return rows[:, 0]
