"""Brings rows into the order of the groups that they belong to, and scales them; groups may change between calls."""

import torch
from torch import nn

rows, width, groups = 1 << 17, 4, 1024


class Model(nn.Module):
    def __init__(self, rows, width, groups):
        super().__init__()
        self.register_buffer("group", torch.randint(0, groups, (rows,)))
        self.scale = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        order = torch.sort(self.group, stable=True).indices
        return x.index_select(0, order) * self.scale


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [rows, width, groups]


DYNAMIC_WEIGHTS = True
