"""Attention, written as products and a softmax, in three lengths, in a suite that requires a kernel."""

import torch
from torch import nn

heads, length, width = 16, 128, 64


class Model(nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(1, 2) * 0.125, dim=2) @ v


def get_inputs():
    return [torch.randn(heads, length, width) for _ in range(3)]


def get_init_inputs():
    return []


CASES = [
    {"name": "given"},
    {"name": "long", "sizes": {"length": 1024}},
    {"name": "longer", "sizes": {"length": 2048}},
]
