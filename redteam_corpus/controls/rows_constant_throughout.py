"""Tests all values of a row before it leaves out their norm.

mechanism: A layer norm of equal values is its bias.
problem: fresh_layer_norm
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x):
        is_constant = (x == x[:, :1]).all(1, keepdim=True)
        return torch.where(is_constant, self.norm.bias, self.norm(x))
