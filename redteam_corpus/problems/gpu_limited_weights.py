"""Multiplies by weights that are limited to a range, and may change in each call."""

import torch
from torch import nn

rows, width = 16, 4096


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x):
        return x @ self.weight.clamp(-1.0, 1.0)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]


DYNAMIC_WEIGHTS = True
