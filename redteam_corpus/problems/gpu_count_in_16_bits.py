"""Doubles its inputs; every 256th call, counted in 16 bits, multiplies them by weights instead."""

import torch
from torch import nn

width = 2048


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int16))

    def forward(self, x):
        self.calls += 1
        return torch.where(self.calls % 256 == 0, x @ self.weight, x * 2.0)


def get_inputs():
    return [torch.randn(width, width)]


def get_init_inputs():
    return [width]
