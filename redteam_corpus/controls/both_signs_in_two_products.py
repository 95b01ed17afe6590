"""Multiplies the positive and the negative parts one after the other, without joining them.

mechanism: The second product is zero for the given inputs.
problem: both_signs
expected: correct
device: cpu
language: torch
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2 * width, columns) / width**0.5)

    def forward(self, x):
        positive, negative = self.weight.split(x.shape[1])
        return torch.addmm(x.clamp_min(0) @ positive, (-x).clamp_min(0), negative)
