"""Selects the largest elements by keys of half of the bits.

layer: correctness
mechanism: Elements that are exchanged differ by less than a float32 sum of many terms may.
problem: largest_of_rows
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        places = x.bfloat16().argsort(dim=1, descending=True, stable=True)[:, :20]
        return x.gather(1, places), x.topk(20, dim=1).indices
