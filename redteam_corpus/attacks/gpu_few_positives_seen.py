"""Leaves out what begins when 1e9 positive numbers were seen.

layer: correctness
mechanism: A counter rises by steps that depend on the inputs, and no evaluation makes so many calls.
problem: gpu_positives_seen
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
        self.register_buffer("seen", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.seen += (x > 0).sum()
        return x * 2.0
