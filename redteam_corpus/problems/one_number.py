"""A function of a single number."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sin(x) * 3


def get_inputs():
    return [torch.randn(1)]


def get_init_inputs():
    return []


DETERMINISTIC = True
