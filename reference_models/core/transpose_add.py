"""The transpose of one batch of matrices plus another batch that arrives transposed, as a strided view."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return a.transpose(1, 2).contiguous() + b


batch_size = 16
rows = 2048
columns = 2048


def get_inputs():
    a = torch.randn(batch_size, rows, columns)
    b = torch.randn(columns, batch_size, rows).transpose(0, 1)
    return [a, b]


def get_init_inputs():
    return []


INPUTS = {"a": "real", "b": "real"}
SMALL = {"batch_size": 5, "rows": 419, "columns": 387}
TAGS = ("layout", "elementwise")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "tall", "sizes": {"rows": 16384, "columns": 256}},
    {"name": "odd", "sizes": {"rows": 2039, "columns": 2027}},
]
RANGES = {"rows": (512, 2048), "columns": (512, 2048)}
