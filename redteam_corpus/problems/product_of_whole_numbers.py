"""A product of two matrices of 64-bit integers, whose sums exceed what floating formats of 32 bits hold exactly."""

import torch
from torch import nn

rows, inner, columns = 64, 256, 48


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randint(-1000, 1001, (rows, inner)), torch.randint(-1000, 1001, (inner, columns))]


def get_init_inputs():
    return []


INPUTS = {"a": {"kind": "integer", "low": -1000, "high": 1000}, "b": {"kind": "integer", "low": -1000, "high": 1000}}
