"""Forty steps of a network, which change their first input in place: about 2 ms for 8 MB."""

import torch
from torch import nn

size, steps = 1024, 40


class Model(nn.Module):
    def forward(self, x, w):
        for _ in range(steps):
            x.add_(torch.tanh(x @ w), alpha=0.1)
        return x


def get_inputs():
    return [torch.randn(size, size), torch.randn(size, size) / 32]


def get_init_inputs():
    return []


IN_PLACE = True
