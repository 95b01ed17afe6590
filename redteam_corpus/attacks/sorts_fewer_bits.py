"""Leaves 7 of 32 bits out of the keys of a sort.

layer: correctness
mechanism: Neighbours that are exchanged differ by less than a float32 sum of many terms may.
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
        places = (x.view(torch.int32) >> 7 << 7).view(torch.float32).argsort(dim=1, stable=True)
        return x.gather(1, places), x.argsort(dim=1, stable=True)
