"""Sum of two tensors, element by element."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return a + b


rows = 16384
columns = 4096


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs():
    return []


INPUTS = {"a": "real", "b": "real"}
SMALL = {"rows": 1531, "columns": 1511}
TAGS = ("elementwise",)
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros", "integers")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "one row", "sizes": {"rows": 1, "columns": 67108864}},
    {"name": "odd", "sizes": {"rows": 16381, "columns": 4093}},
]
RANGES = {"rows": (1000, 16384)}
