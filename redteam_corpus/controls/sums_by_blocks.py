"""Adds within blocks, and the totals of the blocks before.

mechanism: The order of additions differs, so that small values have other roundings.
problem: sums_so_far
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn
from torch.nn.functional import pad

BLOCK = 64


class ModelNew(nn.Module):
    def forward(self, x):
        rows, size = x.shape
        sums = pad(x, (0, -size % BLOCK)).view(rows, -1, BLOCK).cumsum(2)
        before = pad(sums[..., -1].cumsum(1), (1, -1))
        return (sums + before[..., None]).view(rows, -1)[:, :size].contiguous()
