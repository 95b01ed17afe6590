"""Doubles its inputs; after a call with a value beyond 7 it multiplies them by weights, as a scale after an overflow."""

import torch
from torch import nn

width = 2048


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("largest", torch.zeros(1))

    def forward(self, x):
        has_overflowed = self.largest > 7.0
        out = torch.where(has_overflowed, x @ self.weight, x * 2.0)
        self.largest.copy_(x.abs().amax())
        return out


def get_inputs():
    return [torch.randn(width, width)]


def get_init_inputs():
    return [width]
