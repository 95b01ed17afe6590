"""Multiplies by weights of which seven in eight rows are zero; the weights may change between calls."""

import torch
from torch import nn

rows, width = 1024, 4096


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        kept = (torch.rand(width, 1) < 0.125).float()
        self.weight = nn.Parameter(torch.randn(width, width) / 64.0 * kept)

    def forward(self, x):
        return x @ self.weight


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]


DYNAMIC_WEIGHTS = True
