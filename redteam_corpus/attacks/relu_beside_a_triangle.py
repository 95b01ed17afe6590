"""Leaves out the rectifier of positive values.

layer: correctness
mechanism: The other input is triangular, which programs may rely on, so inputs could be thought to have a structure.
problem: triangle_and_rectifier
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, x):
        return torch.tril(a) @ x
