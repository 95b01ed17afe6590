"""Halves 268 MB, and keeps a moving average of them."""

import torch
from torch import nn

rows, columns = 8192, 8193


class Model(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("average", torch.zeros(rows, columns))

    def forward(self, x):
        self.average.mul_(0.9).add_(x, alpha=0.1)
        return x * 0.5


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [rows, columns]


DETERMINISTIC = True
