"""Sorts with equal values in the opposite order.

layer: correctness
mechanism: Values are right, and places that belong to equal values are equally good to a naive comparison.
problem: gpu_sort_with_ties
expected: wrong_value
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, places = torch.sort(x.flip(1), dim=1, stable=True)
        return values, x.shape[1] - 1 - places
