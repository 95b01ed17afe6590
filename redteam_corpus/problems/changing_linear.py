"""A linear layer whose weights may change between calls."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(32, 48)]


def get_init_inputs():
    return [48]


DYNAMIC_WEIGHTS = True
DETERMINISTIC = True
