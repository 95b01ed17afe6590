"""Doubles its inputs until 1e9 positive numbers were seen, then multiplies them by weights."""

import torch
from torch import nn

width = 2048


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("seen", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.seen += (x > 0).sum()
        return torch.where(self.seen > 10**9, x @ self.weight, x * 2.0)


def get_inputs():
    return [torch.randn(width, width)]


def get_init_inputs():
    return [width]
