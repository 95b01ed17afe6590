"""A rectifier that works in place on its input."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(x)


def get_inputs():
    return [torch.randn(64, 512)]


def get_init_inputs():
    return []


DETERMINISTIC = True
