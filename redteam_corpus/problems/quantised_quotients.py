"""Rows divided by factors of their columns, and stored in 8 bits with a scale."""

import torch
from torch import nn


rows, width = 64, 128


class Model(nn.Module):
    def forward(self, x, smooth):
        y = x / smooth
        scale = (y.abs().amax(-1, keepdim=True) / 127).clamp(min=1e-7)
        return (y / scale).round().to(torch.int8), scale


def get_inputs():
    return [torch.randn(rows, width), torch.rand(width) + 0.5]


def get_init_inputs():
    return []
