"""A gated layer as in language models."""

import torch
from torch import nn

size, inner = 96, 160


class Model(nn.Module):
    def __init__(self, size, inner):
        super().__init__()
        self.norm = nn.RMSNorm(size, eps=1e-6)
        self.gate = nn.Linear(size, inner, bias=False)
        self.up = nn.Linear(size, inner, bias=False)
        self.down = nn.Linear(inner, size, bias=False)

    def forward(self, x):
        normal = self.norm(x)
        return x + self.down(nn.functional.gelu(self.gate(normal), approximate="tanh") * self.up(normal))


def get_inputs():
    return [torch.randn(4, 31, size)]


def get_init_inputs():
    return [size, inner]
