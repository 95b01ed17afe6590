"""Rows divided by their length."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return nn.functional.normalize(x, dim=1)


def get_inputs():
    return [torch.randn(90, 200)]


def get_init_inputs():
    return []
