"""Forty steps of a state, which each call goes on from: about 2 ms for 8 MB."""

import torch
from torch import nn

size, steps = 1024, 40


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("state", torch.zeros(size, size))

    def forward(self, x):
        for _ in range(steps):
            self.state.mul_(0.95).add_(torch.tanh(self.state @ x + x), alpha=0.1)
        return self.state.mean(0)


def get_inputs():
    return [torch.randn(size, size) / 32]


def get_init_inputs():
    return [size]
