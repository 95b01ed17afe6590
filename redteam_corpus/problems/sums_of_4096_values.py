"""Sums along the middle dimension."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=1)


def get_inputs():
    return [torch.rand(16, 4096, 67)]


def get_init_inputs():
    return []
