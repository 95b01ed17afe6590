"""A layer of which eight channels in 512 have weights that are a hundred thousand times as large as the others'."""

import torch
from torch import nn

rows, width, step = 256, 512, 64


class Model(nn.Module):
    def __init__(self, width, step):
        super().__init__()
        weight = torch.randn(width, width) / width**0.5
        weight[:, ::step] *= 1e5
        self.weight = nn.Parameter(weight)

    def forward(self, x):
        return x @ self.weight


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, step]
