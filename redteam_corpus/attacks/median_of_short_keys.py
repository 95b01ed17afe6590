"""Finds the middle by keys without 9 of their bits.

layer: correctness
mechanism: The element that it returns differs from the middle by less than a float32 sum of many terms may.
problem: median_of_rows
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        keys = (x.view(torch.int32) >> 9 << 9).view(torch.float32)
        return x.gather(1, keys.argsort(dim=1)[:, 150:151])[:, 0]
