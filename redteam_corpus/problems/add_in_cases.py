"""A sum in several sizes, one of them drawn for each evaluation."""

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


DISTRIBUTIONS = ("as_given", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "tall", "sizes": {"rows": 301}},
    {"name": "wide", "sizes": {"columns": 1027}},
]
RANGES = {"rows": (400, 4000)}
