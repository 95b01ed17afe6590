"""Marks numbers that are far from zero by their sign, and all others by -1: 16 MB to 32 MB."""

import torch
from torch import nn

rows, columns = 2048, 2049


class Model(nn.Module):
    def forward(self, x):
        return torch.where(x.abs() > 3.0, (x > 0).long(), -1)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []


DETERMINISTIC = True
