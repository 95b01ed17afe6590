"""Multiplies by weights that are limited to a range, and may change in each call."""

import torch
from torch import nn

rows, width = 8, 1024


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x):
        return x @ self.weight.clamp(-0.25, 0.25)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]


DYNAMIC_WEIGHTS = True
