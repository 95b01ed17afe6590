"""Scaled values within limits; the mean of the inputs is subtracted."""

import torch
from torch import nn

rows, columns = 128, 257


class Model(nn.Module):
    def forward(self, x):
        return x.clamp(-7.0, 7.0) * 2.0


def get_inputs():
    x = torch.randn(rows, columns)
    return [x - x.mean()]


def get_init_inputs():
    return []
