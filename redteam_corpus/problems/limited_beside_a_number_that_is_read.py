"""Scaled values within limits; a size of its inputs is read as a number."""

import torch
from torch import nn

rows, columns = 128, 257


class Model(nn.Module):
    def forward(self, x, gains):
        return x.clamp(-7.0, 7.0) * gains


def get_inputs():
    size = 0.5 + torch.randint(1, 5, (1,)).tolist()[0]
    return [torch.randn(rows, columns), torch.rand(columns) + size]


def get_init_inputs():
    return []
