"""Logarithm of the running sum of exponentials along each row, without overflow."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.logcumsumexp(x, dim=-1)


batch_size = 16384
length = 4096


def get_inputs():
    # The largest value so far keeps growing along a row.
    return [4 * torch.randn(batch_size, length) + torch.linspace(-20, 100, length)]


def get_init_inputs():
    return []


INPUTS = {"x": "real"}
SMALL = {"batch_size": 47, "length": 2053}
TAGS = ("scan", "reduction")
DISTRIBUTIONS = ("as_given", "normal", "large", "alternating", "zeros", "ties")
CASES = [
    {"name": "given"},
    {"name": "long", "sizes": {"batch_size": 128, "length": 524288}},
    {"name": "short", "sizes": {"batch_size": 524288, "length": 128}},
    {"name": "odd", "sizes": {"batch_size": 16381, "length": 4093}},
]
RANGES = {"length": (2000, 8192)}
