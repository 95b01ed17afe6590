"""Doubles rows; those whose own count reaches a multiple of 1024 are multiplied by weights."""

import torch
from torch import nn

width = 2048


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("ages", torch.arange(width)[:, None] % 512 + 1)

    def forward(self, x):
        self.ages += 1
        return torch.where(self.ages % 1024 == 0, x @ self.weight, x * 2.0)


def get_inputs():
    return [torch.randn(width, width)]


def get_init_inputs():
    return [width]
