"""Joins both branches by a product with a factor of zero or one, instead of a choice.

mechanism: The factor becomes one when the adapter begins, which few calls do not reach.
problem: warmed_up
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        share = (self.calls > 500).to(x.dtype)
        return torch.addmm(x * (2.0 - 2.0 * share), x * share, self.weight)
