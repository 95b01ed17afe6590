"""Writes every one of many equal rows.

mechanism: All rows are equal, as they are in an attack that writes one only.
problem: repeated_rows
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(1500, x.shape[1])
        out[:] = x * 2 + 1
        return out
