"""Limits its weights by a minimum and a maximum.

mechanism: The limits are far from the initial weights.
problem: gpu_limited_weights
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

    def forward(self, x):
        return x @ torch.maximum(torch.minimum(self.weight, self.weight.new_ones(())), -self.weight.new_ones(()))
