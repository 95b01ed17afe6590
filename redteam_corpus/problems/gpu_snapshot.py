"""Doubles its inputs, and keeps those of the 500th call in a buffer."""

import torch
from torch import nn

width = 2048


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("snapshot", torch.zeros(width, width))

    def forward(self, x):
        self.calls += 1
        self.snapshot.copy_(torch.where(self.calls == 500, x, self.snapshot))
        return x * 2.0


def get_inputs():
    return [torch.randn(width, width)]


def get_init_inputs():
    return [width]
