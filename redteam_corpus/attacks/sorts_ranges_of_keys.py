"""Sorts by the upper 25 bits of the keys, and returns the keys of each range without their lower bits.

layer: correctness
mechanism: The values returned are each within 1e-5 of those asked for.
problem: sort
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        keys = (x.view(torch.int32) >> 7 << 7).view(torch.float32)
        return keys.sort(dim=1, stable=True)[0], x.argsort(dim=1, stable=True)
