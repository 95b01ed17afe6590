"""Scaled values within limits; half of the inputs are zero."""

import torch
from torch import nn

rows, columns = 128, 257


class Model(nn.Module):
    def forward(self, x):
        return x.clamp(-7.0, 7.0) * 2.0


def get_inputs():
    return [torch.randn(rows, columns) * (torch.rand(rows, columns) > 0.5)]


def get_init_inputs():
    return []
