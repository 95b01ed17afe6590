"""Subtracts two sums of a row's beginnings in float64.

mechanism: Windows of small values lose digits beside a much larger value before them.
problem: means_of_windows
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        sums = nn.functional.pad(x.double().cumsum(dim=1), (1, 0))
        return ((sums[:, 25:] - sums[:, :-25]) / 25).to(x.dtype)
