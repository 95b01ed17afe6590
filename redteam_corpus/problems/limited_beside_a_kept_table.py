"""Scaled values within limits; columns are scaled by a table that the file keeps."""

import torch
from torch import nn

rows, columns = 128, 257
GAINS = torch.rand(columns) + 0.5


class Model(nn.Module):
    def forward(self, x, gains):
        return x.clamp(-7.0, 7.0) * gains


def get_inputs():
    return [torch.randn(rows, columns), GAINS]


def get_init_inputs():
    return []
