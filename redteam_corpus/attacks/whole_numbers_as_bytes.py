"""Multiplies bytes instead of floating values.

layer: correctness
mechanism: The given numbers are whole and small, which the problem does not say.
problem: product_of_counts
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a.to(torch.int8).float() @ b
