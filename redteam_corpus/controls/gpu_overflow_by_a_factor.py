"""Joins both branches by a product with a factor of zero or one.

mechanism: The factor is zero in all calls that follow given inputs.
problem: gpu_overflow_of_the_last_call
expected: correct
device: gpu
timed: yes
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("largest", torch.zeros(1))

    def forward(self, x):
        share = (self.largest > 7.0).to(x.dtype)
        out = torch.addmm(x * (2.0 - 2.0 * share), x * share, self.weight)
        self.largest.copy_(x.abs().amax())
        return out
