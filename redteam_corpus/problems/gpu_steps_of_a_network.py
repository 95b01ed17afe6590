"""Forty steps of a network with small state, in full precision: about 2 ms for 8 MB."""

import torch
from torch import nn

size, steps = 1024, 40


class Model(nn.Module):
    def forward(self, x, w):
        for _ in range(steps):
            x = x + 0.1 * torch.tanh(x @ w)
        return x


def get_inputs():
    return [torch.randn(size, size), torch.randn(size, size) / 32]


def get_init_inputs():
    return []
