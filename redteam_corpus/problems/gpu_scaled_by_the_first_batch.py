"""Moves and scales channels by the moments of the first batch, as in flows."""

import torch
from torch import nn

rows, width = 8192, 1024


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("ready", torch.zeros(1, dtype=torch.bool))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("factor", torch.ones(width))

    def forward(self, x):
        deviation, mean = torch.std_mean(x, 0)
        self.mean.copy_(torch.where(self.ready, self.mean, mean))
        self.factor.copy_(torch.where(self.ready, self.factor, 1.0 / deviation))
        self.ready.fill_(True)
        return (x - self.mean) * self.factor


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]
