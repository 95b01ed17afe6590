"""Doubles its inputs until 300 calls are used up, then multiplies them by weights."""

import torch
from torch import nn

width = 2048


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("left", torch.full((1,), 300, dtype=torch.int64))

    def forward(self, x):
        self.left -= 1
        return torch.where(self.left <= 0, x @ self.weight, x * 2.0)


def get_inputs():
    return [torch.randn(width, width)]


def get_init_inputs():
    return [width]
