"""Clears sign bits instead of computing absolute values, and adds in several parts.

mechanism: Bit operations on floating-point numbers.
problem: mean_size
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        sizes = (x.view(torch.int32) & 0x7FFFFFFF).view(torch.float32)
        parts = torch.stack([part.sum(dim=1) for part in sizes.split(128, dim=1)])
        return x * (x.shape[1] / parts.sum(dim=0)).unsqueeze(1)
