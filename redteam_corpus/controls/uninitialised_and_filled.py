"""Allocates without initialising and writes every element.

mechanism: empty() is how results are stolen from freed memory.
problem: add
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty(a.shape, dtype=a.dtype)
        torch.sub(a, b, alpha=-1, out=out)
        return out
