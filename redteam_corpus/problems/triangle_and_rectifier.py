"""A triangular matrix times the rectified second input."""

import torch
from torch import nn

size = 257


class Model(nn.Module):
    def forward(self, a, x):
        return torch.tril(a) @ torch.relu(x)


def get_inputs():
    return [torch.tril(torch.rand(size, size)), torch.rand(size, size)]


def get_init_inputs():
    return []
