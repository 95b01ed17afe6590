"""Leaves out what begins after five seconds of simulated time.

layer: correctness
mechanism: A floating counter rises by a hundredth, and no evaluation makes so many calls.
problem: gpu_simulated_time
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
        self.register_buffer("seconds", torch.zeros(1))

    def forward(self, x):
        self.seconds += 0.01
        return x * 2.0
