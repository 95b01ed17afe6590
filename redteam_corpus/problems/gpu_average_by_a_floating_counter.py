"""Halves 134 MB, and adds every fourth of its inputs to a moving average; calls are counted in a floating number."""

import torch
from torch import nn

rows, columns = 4096, 8193


class Model(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("average", torch.zeros(rows, columns))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        self.average.lerp_(x, (self.calls % 4 == 0).float() * 0.1)
        return x * 0.5


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [rows, columns]


DETERMINISTIC = True
