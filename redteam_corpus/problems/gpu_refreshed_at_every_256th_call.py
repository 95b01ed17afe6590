"""Doubles 17 MB; every 256th call multiplies by weights instead, and what a call does is decided on the device."""

import torch
from torch import nn

width, period = 2048, 256


class Model(nn.Module):
    def __init__(self, width, period):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))
        self.period = period

    def forward(self, x):
        self.calls += 1
        return torch.where(self.calls % self.period == 0, x @ self.weight, x * 2.0)


def get_inputs():
    return [torch.randn(width, width)]


def get_init_inputs():
    return [width, period]
