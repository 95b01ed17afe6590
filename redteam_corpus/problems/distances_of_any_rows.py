"""Distances between all pairs of rows, of any number."""

import torch
from torch import nn


first, second, width = 50, 36, 20


DYNAMIC_SHAPES = True


class Model(nn.Module):
    def forward(self, a, b):
        return (a[:, None] - b[None]).abs().sum(-1)


def get_inputs():
    return [torch.randn(first, width), torch.randn(second, width)]


def get_init_inputs():
    return []
