"""A product with a matrix of -1, 0 and 1, as floating values."""

import torch
from torch import nn

size = 128


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randint(-1, 2, (size, size)).float(), torch.randn(size, size)]


def get_init_inputs():
    return []
