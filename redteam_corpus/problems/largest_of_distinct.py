"""The largest of numbers that differ, and their places."""

import torch
from torch import nn

rows, columns, count = 32, 500, 20


class Model(nn.Module):
    def forward(self, x):
        return torch.topk(x, count, dim=1)


def get_inputs():
    ranks = torch.rand(rows, columns).argsort(dim=1) + 0.5 * torch.rand(rows, columns)
    return [ranks - columns * torch.rand(rows, 1)]


def get_init_inputs():
    return []


INPUTS = {"x": {"kind": "real", "distinct": True}}
DETERMINISTIC = True
