"""Reads from a memory by a function of the whole memory, then adds to it: about 3 ms."""

import torch
from torch import nn

rows, width = 64, 4096


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("memory", torch.randn(width, width) / 64.0)

    def forward(self, x):
        out = x @ torch.tanh(self.memory @ self.memory.t())
        self.memory.mul_(0.99).add_(x.t() @ x, alpha=1e-3)
        return out


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width]


DETERMINISTIC = True
