"""Leaves out what every 256th call does, where calls are counted in 16 bits.

layer: correctness
mechanism: It differs in one call of 256, which 16 bits count.
problem: gpu_count_in_16_bits
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
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int16))

    def forward(self, x):
        self.calls += 1
        return x * 2.0
