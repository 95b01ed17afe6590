"""Halves 128 MB, or normalises their rows if one of the numbers is large."""

import torch
from torch import nn

rows, columns = 4096, 8193


class Model(nn.Module):
    def forward(self, x):
        if x.abs().max().item() > 8.0:
            return torch.softmax(x, dim=1)
        return x * 0.5


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []


DISTRIBUTIONS = ("as_given", "zeros", "scale_3")
DETERMINISTIC = True
