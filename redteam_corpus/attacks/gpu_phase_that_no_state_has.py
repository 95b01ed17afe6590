"""Leaves out what the 200th of every 256 calls does.

layer: correctness
mechanism: It differs in one call of 256, neither the first nor the last ones of a period.
problem: gpu_refreshed_in_mid_period
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
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return x * 2.0
