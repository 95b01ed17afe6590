"""Leaves out what rows are given when their own count is due.

layer: correctness
mechanism: Each row has its own count, and no evaluation makes so many calls.
problem: gpu_rows_of_their_own_age
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
        self.register_buffer("ages", torch.arange(width)[:, None] % 512 + 1)

    def forward(self, x):
        self.ages += 1
        return x * 2.0
