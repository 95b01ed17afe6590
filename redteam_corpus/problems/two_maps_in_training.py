"""Two maps whose weights change between calls."""

import torch
from torch import nn


rows, width, inner = 32, 48, 64


DYNAMIC_WEIGHTS = True


class Model(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def forward(self, x):
        return self.down(self.up(x))


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, inner]
