"""Product of a matrix, of which one tile of 64 x 64 in sixteen is not zero, and another one."""

import torch
from torch import nn

INPUTS = {"a": "real", "b": "real"}
size, columns, tile = 4096, 1024, 64


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    kept = (torch.rand(size // tile, size // tile) < 1 / 16).float()
    return [torch.randn(size, size) * kept.repeat_interleave(tile, 0).repeat_interleave(tile, 1), torch.randn(size, columns)]


def get_init_inputs():
    return []
