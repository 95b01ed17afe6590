"""Sums of logarithms of rows, 67 MB; if one in a hundred of all numbers is negative, they are moved first."""

import torch
from torch import nn

rows, columns = 2048, 8193


class Model(nn.Module):
    def forward(self, x):
        low = x.flatten().sort().values[x.numel() // 100].item()
        if low < 0.0:
            x = x - low + 0.5
        return torch.log1p(x).sum(1)


def get_inputs():
    return [torch.rand(rows, columns)]


def get_init_inputs():
    return []


DISTRIBUTIONS = ("as_given", "scale_-1")
