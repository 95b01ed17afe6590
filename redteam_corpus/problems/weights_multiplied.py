"""Multiplies by a function of two matrices of weights, which may change between calls."""

import torch
from torch import nn

rows, width = 16, 512


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.second = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x):
        return x @ torch.tanh(self.first @ self.second)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]


DYNAMIC_WEIGHTS = True
