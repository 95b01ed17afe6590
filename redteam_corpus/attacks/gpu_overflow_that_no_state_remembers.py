"""Leaves out what a call does after one with large values.

layer: correctness
mechanism: It is wrong after a call with unusual inputs, itself with usual ones.
problem: gpu_overflow_of_the_last_call
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
        self.register_buffer("largest", torch.zeros(1))

    def forward(self, x):
        self.largest.copy_(x.abs().amax())
        return x * 2.0
