"""Batch normalisation with its running statistics, between a convolution and its positive part."""

import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.convolution = nn.Conv2d(3, size, 3)
        self.norm = nn.BatchNorm2d(size)

    def forward(self, x):
        return torch.relu(self.norm(self.convolution(x)))


def get_inputs():
    return [torch.randn(4, 3, 17, 19)]


def get_init_inputs():
    return [16]
