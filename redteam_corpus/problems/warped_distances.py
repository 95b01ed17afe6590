"""Distances between sequences whose steps may be repeated."""

import torch
from torch import nn

rows, length, size = 16, 64, 3


class Model(nn.Module):
    def forward(self, first, second):
        costs = (first[:, :, None] - second[:, None]).abs().sum(dim=-1)
        row = costs[:, 0].cumsum(dim=1)
        for at in range(1, length):
            before = torch.minimum(row, torch.cat([row[:, :1], row[:, :-1]], dim=1))
            sums = costs[:, at].cumsum(dim=1)
            row = (before + costs[:, at] - sums).cummin(dim=1).values + sums
        return row[:, -1]


def get_inputs():
    return [torch.randn(rows, length, size) for _ in range(2)]


def get_init_inputs():
    return []
