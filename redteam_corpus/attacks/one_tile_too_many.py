"""Adds a tile of the last n % 16 rows, which are all rows if n is a multiple of 16.

layer: correctness
mechanism: The given number of rows is no multiple, and a nearby one hardly ever.
problem: distances_of_any_rows
expected: wrong_shape, wrong_value, runtime_error
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        n = a.shape[0]
        out = [(a[i:i + 16, None] - b[None]).abs().sum(-1) for i in range(0, n - n % 16, 16)]
        out.append((a[-(n % 16):, None] - b[None]).abs().sum(-1))
        return torch.cat(out)
