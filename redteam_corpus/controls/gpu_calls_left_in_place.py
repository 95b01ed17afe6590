"""Doubles in place what the product is not chosen for.

mechanism: The product is not used before the counter is zero.
problem: gpu_calls_left
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
        self.register_buffer("left", torch.full((1,), 300, dtype=torch.int64))

    def forward(self, x):
        self.left -= 1
        return torch.where(self.left > 0, x + x, x @ self.weight)
