"""A residual block without biases, whose branch is scaled by a small constant."""

import torch
from torch import nn

rows, width = 4096, 4096


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width, bias=False)
        self.second = nn.Linear(width, width, bias=False)
        self.register_buffer("scale", torch.full((width,), 1e-6))

    def forward(self, x):
        return x + self.scale * self.second(torch.relu(self.first(x)))


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]
