"""Adds a residual and normalises."""

import math

import torch
import torch.nn.functional as F
from torch import nn

width = 384

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x, residual):
        return self.norm(x + residual)


def get_inputs():
    return [torch.randn(64, width), torch.randn(64, width)]


def get_init_inputs():
    return [width]
