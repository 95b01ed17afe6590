"""Writes the new inputs over the older ones, and exchanges the names of the two buffers.

mechanism: What one buffer begins with lies in the other one's memory afterwards, and is not copied.
problem: gpu_second_difference
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
        self.register_buffer("last", torch.zeros(width, width))
        self.register_buffer("before", torch.zeros(width, width))

    def forward(self, x):
        out = torch.add(x, self.last, alpha=-2.0).add_(self.before)
        self.before.copy_(x)
        self.last, self.before = self.before, self.last
        return out
