"""Scales its inputs by a temperature that falls by 1 % per call; below a tenth it multiplies them by weights."""

import torch
from torch import nn

width = 2048


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("heat", torch.ones(1))

    def forward(self, x):
        self.heat *= 0.99
        return torch.where(self.heat < 0.1, x @ self.weight, x * self.heat)


def get_inputs():
    return [torch.randn(width, width)]


def get_init_inputs():
    return [width]
