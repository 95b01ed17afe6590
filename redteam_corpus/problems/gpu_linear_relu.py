"""A linear layer and its activation."""

import torch
from torch import nn

rows, width = 2048, 2048


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []


DETERMINISTIC = True
