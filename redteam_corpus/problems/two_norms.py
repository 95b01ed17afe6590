"""Two normalisations, one behind a linear layer."""

import math

import torch
import torch.nn.functional as F
from torch import nn

width = 192

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.linear, self.second = nn.LayerNorm(width), nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x):
        return self.second(self.linear(self.first(x)))


def get_inputs():
    return [torch.randn(64, width)]


def get_init_inputs():
    return [width]
