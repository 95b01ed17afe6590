"""Layer norm, forward and backward."""

import torch
from torch import nn

rows, width = 4096, 2048


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.nn.functional.layer_norm(x, x.shape[-1:], self.weight, self.bias)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]


BACKWARD = True
