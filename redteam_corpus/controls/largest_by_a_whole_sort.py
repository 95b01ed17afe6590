"""Sorts all elements and keeps the first.

mechanism: All bits of the keys count.
problem: largest_of_rows
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, places = x.sort(dim=1, descending=True, stable=True)
        return values[:, :20], places[:, :20]
