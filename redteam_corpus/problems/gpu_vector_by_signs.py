"""Multiplies a vector by the signs of 268 MB of weights, which may change between calls."""

import torch
from torch import nn

width = 8192


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width))

    def forward(self, x):
        return x @ torch.sign(self.weight)


def get_inputs():
    return [torch.randn(1, width)]


def get_init_inputs():
    return [width]


DYNAMIC_WEIGHTS = True
