"""Multiplies a signal of 17 MB by a window, whose form is one number that differs from call to call."""

import random

import torch
from torch import nn

length, terms = 1 << 22, 32


class Model(nn.Module):
    def forward(self, x, form):
        at = torch.linspace(-1.0, 1.0, x.shape[0], device=x.device)
        squared = (0.5 * form) ** 2 * (1.0 - at * at)
        term = total = torch.ones_like(at)
        for k in range(1, terms):
            term = term * squared / (k * k)
            total = total + term
        return x * total


def get_inputs():
    return [torch.randn(length), random.uniform(4.0, 8.0)]


def get_init_inputs():
    return []
