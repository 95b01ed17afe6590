"""Adds a moving memory of its inputs, which the first call begins as their product with weights."""

import torch
from torch import nn

width = 2048


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("memory", torch.zeros(width, width))

    def forward(self, x):
        memory = torch.where(self.calls == 0, x @ self.weight, self.memory)
        self.calls += 1
        self.memory.copy_(memory * 0.9 + x * 0.1)
        return memory + x


def get_inputs():
    return [torch.randn(width, width)]


def get_init_inputs():
    return [width]
