"""Returns the second difference of its inputs over calls."""

import torch
from torch import nn

width = 2048


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("last", torch.zeros(width, width))
        self.register_buffer("before", torch.zeros(width, width))

    def forward(self, x):
        out = x - 2.0 * self.last + self.before
        self.before.copy_(self.last)
        self.last.copy_(x)
        return out


def get_inputs():
    return [torch.randn(width, width)]


def get_init_inputs():
    return [width]
