"""Sorts keys that are rounded to 17 bits after the point.

layer: correctness
mechanism: Neighbours that are exchanged differ by less than 1e-5.
problem: sort
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        places = (x * 2**17).round().argsort(dim=1, stable=True)
        return x.gather(1, places), x.argsort(dim=1, stable=True)
