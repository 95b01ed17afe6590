"""Adds to its memory in place, and chooses the first call's by a mask.

mechanism: The product is needed in the first call only.
problem: gpu_first_call
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
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("memory", torch.zeros(width, width))

    def forward(self, x):
        first = (self.calls == 0).expand_as(x)
        self.memory.copy_(torch.where(first, x @ self.weight, self.memory))
        out = self.memory + x
        self.memory.mul_(0.9).add_(x, alpha=0.1)
        self.calls.add_(1)
        return out
