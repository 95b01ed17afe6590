"""Scaled values within limits; both arguments are one tensor."""

import torch
from torch import nn

rows, columns = 128, 257


class Model(nn.Module):
    def forward(self, x, gains):
        return x.clamp(-7.0, 7.0) * gains


def get_inputs():
    x = torch.randn(rows, columns)
    return [x, x]


def get_init_inputs():
    return []
