"""Product of two square matrices of three sizes, in a suite that requires a kernel."""

import torch
from torch import nn

size = 256


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(size, size), torch.randn(size, size)]


def get_init_inputs():
    return []


CASES = [
    {"name": "given"},
    {"name": "large", "sizes": {"size": 512}},
    {"name": "larger", "sizes": {"size": 768}},
]
