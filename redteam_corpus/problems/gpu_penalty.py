"""A product, and the mean square of 268 MB of weights, which may change between calls."""

import torch
from torch import nn

rows, width, many = 256, 1024, 65536


class Model(nn.Module):
    def __init__(self, width, many):
        super().__init__()
        self.head = nn.Parameter(torch.randn(width, width) / 32.0)
        self.table = nn.Parameter(torch.randn(many, width))

    def forward(self, x):
        return x @ self.head, self.table.square().mean()


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, many]


DYNAMIC_WEIGHTS = True
