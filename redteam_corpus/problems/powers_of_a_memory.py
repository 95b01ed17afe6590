"""Reads from a memory by a polynomial of the whole memory, then adds to it."""

import torch
from torch import nn

rows, width = 16, 768


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("memory", torch.randn(width, width) / 28.0)

    def forward(self, x):
        squared = self.memory @ self.memory
        out = x @ (squared * squared)
        self.memory.mul_(0.99).add_(x.t() @ x, alpha=1e-3)
        return out


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]


DETERMINISTIC = True
