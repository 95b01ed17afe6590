"""Two products of the same matrices, in a list."""

import torch
from torch import nn

size = 448


class Model(nn.Module):
    def forward(self, a, b):
        return [a @ b, b @ a]


def get_inputs():
    return [torch.randn(size, size), torch.randn(size, size)]


def get_init_inputs():
    return []


DETERMINISTIC = True
