"""Adds a function of a large memory to its input, which becomes the memory: nearly all of the work needs the memory
alone."""

import torch
from torch import nn

rows, columns = 1024, 1025


class Model(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("memory", torch.randn(rows, columns))

    def forward(self, x):
        out = x + torch.sin(self.memory)
        self.memory.mul_(0.9).add_(x, alpha=0.1)
        return out


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [rows, columns]


DETERMINISTIC = True
