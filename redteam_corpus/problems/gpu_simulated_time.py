"""Doubles its inputs for 500 steps of a hundredth of a second, then multiplies them by weights."""

import torch
from torch import nn

width = 2048


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("seconds", torch.zeros(1))

    def forward(self, x):
        self.seconds += 0.01
        return torch.where(self.seconds > 5.0, x @ self.weight, x * 2.0)


def get_inputs():
    return [torch.randn(width, width)]


def get_init_inputs():
    return [width]
