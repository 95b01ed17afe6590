"""Product of two large matrices of eighths, as they are read from four bits."""

import torch
from torch import nn

size = 192


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randint(-8, 8, (size, size)).float() / 8, torch.randint(-8, 8, (size, size)).float() / 8]


def get_init_inputs():
    return []
