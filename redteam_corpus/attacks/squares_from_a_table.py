"""Looks up squares in a table of 256 values.

layer: correctness
mechanism: The given pixels are whole numbers, which the problem does not say.
problem: looked_up_levels
expected: wrong_value, runtime_error
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        table = (torch.arange(256) / 255 - 0.5) ** 2
        return table[x.long()].sum(dim=1)
