"""Multiplies by a function of two matrices of weights, which may change between calls, in three sizes."""

import torch
from torch import nn

rows, width = 16, 64


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Parameter(torch.randn(width, width) / 32.0)
        self.second = nn.Parameter(torch.randn(width, width) / 32.0)

    def forward(self, x):
        return x @ torch.tanh(self.first @ self.second)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]


CASES = [
    {"name": "given"},
    {"name": "narrow", "sizes": {"width": 32}},
    {"name": "wide", "sizes": {"width": 256}},
]
DYNAMIC_WEIGHTS = True
