"""Product of two matrices."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.matmul(a, b)


rows = 4096
inner = 4096
columns = 4096


def get_inputs():
    return [torch.randn(rows, inner), torch.randn(inner, columns)]


def get_init_inputs():
    return []


INPUTS = {"a": "real", "b": "real"}
SMALL = {"rows": 283, "inner": 517, "columns": 311}
TAGS = ("matmul",)
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros", "integers")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "skinny", "sizes": {"rows": 64}},
    {"name": "deep", "sizes": {"rows": 512, "inner": 65536, "columns": 512}},
    {"name": "odd", "sizes": {"rows": 4093, "inner": 4091, "columns": 4099}},
]
RANGES = {"rows": (1024, 4096), "columns": (1024, 4096)}
