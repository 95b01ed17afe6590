"""A convolution and its activation."""

import torch
from torch import nn

batch, channels, size = 16, 64, 112


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(x))


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return []


DETERMINISTIC = True
