"""Leaves out what follows when a counter has come down to zero.

layer: correctness
mechanism: The counter falls, and no evaluation makes so many calls.
problem: gpu_calls_left
expected: wrong_value, suspect
device: gpu
timed: yes
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
        return x * 2.0
