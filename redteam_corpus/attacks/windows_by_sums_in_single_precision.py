"""Subtracts two sums of a row's beginnings in float32.

layer: correctness
mechanism: Sums of beginnings of given rows are small, so that differences keep most digits.
problem: means_of_windows
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        sums = nn.functional.pad(x.cumsum(dim=1), (1, 0))
        return (sums[:, 25:] - sums[:, :-25]) / 25
