"""A linear layer that takes a few milliseconds."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(512, 768)]


def get_init_inputs():
    return [768]


DETERMINISTIC = True
