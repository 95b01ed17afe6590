"""Sum over the middle dimension, which is kept with size 1."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.sum(x, dim=self.dim, keepdim=True)


batch_size = 128
length = 4096
features = 256
dim = 1


def get_inputs():
    return [torch.randn(batch_size, length, features)]


def get_init_inputs():
    return [dim]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 37, "length": 811, "features": 151}
TAGS = ("reduction",)
DISTRIBUTIONS = ("as_given", "uniform", "large", "alternating", "zeros", "integers")
CASES = [
    {"name": "given"},
    {"name": "one batch", "sizes": {"batch_size": 1, "length": 524288}},
    {"name": "odd", "sizes": {"batch_size": 127, "length": 4093, "features": 251}},
]
RANGES = {"length": (1000, 4096)}
