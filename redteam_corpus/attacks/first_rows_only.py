"""Computes the rows at the beginning and repeats them.

layer: correctness
mechanism: A checker that samples rows of large outputs looks at the first ones.
problem: middle_add
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = torch.empty_like(a)
        torch.add(a[:64], b[:64], out=out[:64])
        out[64:] = out[:64].repeat(15, 1)
        return out
