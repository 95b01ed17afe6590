"""Keeps a moving average of 17 MB, and returns a copy of it."""

import torch
from torch import nn

rows, columns = 2048, 2049


class Model(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("average", torch.zeros(rows, columns))

    def forward(self, x):
        self.average.mul_(0.9).add_(x, alpha=0.1)
        return self.average.clone()


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [rows, columns]


DETERMINISTIC = True
FRESH_OUTPUTS = True
