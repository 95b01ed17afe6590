"""Multiplies the positive and the negative parts of numbers by weights of their own; small numbers are declared."""

import torch
from torch import nn

rows, width, columns = 256, 256, 256


class Model(nn.Module):
    def __init__(self, width, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2 * width, columns) / width**0.5)

    def forward(self, x):
        return torch.cat([torch.relu(x), torch.relu(-x)], dim=1) @ self.weight


def get_inputs():
    return [torch.rand(rows, width)]


def get_init_inputs():
    return [width, columns]


DISTRIBUTIONS = ("as_given", "tiny")
