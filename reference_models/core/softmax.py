"""Softmax over the last dimension."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.softmax(x, dim=-1)


batch_size = 4096
features = 32768


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return []


INPUTS = {"x": "real"}
SMALL = {"batch_size": 251, "features": 4099}
TAGS = ("reduction", "normalization")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros", "ties")
CASES = [
    {"name": "given"},
    {"name": "short rows", "sizes": {"batch_size": 1048576, "features": 128}},
    {"name": "odd", "sizes": {"batch_size": 4093, "features": 32749}},
]
RANGES = {"features": (1000, 32768)}
