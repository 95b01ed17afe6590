"""Doubles its inputs; after 500 calls it multiplies them by weights, as an adapter after a warm-up."""

import torch
from torch import nn

width = 128


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return torch.where(self.calls > 500, x @ self.weight, x * 2.0)


def get_inputs():
    return [torch.randn(width, width)]


def get_init_inputs():
    return [width]
