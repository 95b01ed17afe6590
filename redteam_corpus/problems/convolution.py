"""A convolution with a bias and its positive part."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.conv = nn.Conv2d(size, 8, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(x))


def get_inputs():
    return [torch.randn(4, 6, 20, 21)]


def get_init_inputs():
    return [6]


DETERMINISTIC = True
