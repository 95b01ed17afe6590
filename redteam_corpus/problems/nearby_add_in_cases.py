"""A sum in three sizes, and at sizes near each."""

import torch
from torch import nn

rows, columns = 64, 65


class Model(nn.Module):
    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs():
    return []


CASES = [
    {"name": "given"},
    {"name": "tall", "sizes": {"rows": 301}},
    {"name": "wide", "sizes": {"columns": 1027}},
]
DYNAMIC_SHAPES = True
