"""Leaves out what begins at a low temperature.

layer: correctness
mechanism: Each call multiplies the state by 0.99, and no evaluation makes so many calls.
problem: gpu_annealed
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
        self.register_buffer("heat", torch.ones(1))

    def forward(self, x):
        self.heat *= 0.99
        return x * self.heat
