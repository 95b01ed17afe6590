"""A product of integers of a stated range, as floating values."""

import torch
from torch import nn

size = 192


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randint(0, 100, (size, size)).float(), torch.randn(size, size)]


def get_init_inputs():
    return []


INPUTS = {"a": {"kind": "integer", "low": 0, "high": 1000}, "b": "real"}
