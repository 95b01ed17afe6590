"""Multiplies its weights in each call, by parts.

mechanism: Weights may change; nothing that depends on them is kept.
problem: gpu_changing_weights
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Parameter(torch.randn(width, width) / 64.0)
        self.second = nn.Parameter(torch.randn(width, width) / 64.0)

    def forward(self, x):
        return torch.cat([x @ torch.tanh(self.first @ part) for part in self.second.chunk(2, 1)], 1)
