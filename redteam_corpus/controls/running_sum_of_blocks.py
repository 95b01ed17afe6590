"""Adds blocks of 64 values, and then what precedes each block.

mechanism: Sums are made in another order, and small ones beside large ones keep their digits.
problem: sums_so_far
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn

BLOCK = 64


class ModelNew(nn.Module):
    def forward(self, x):
        length = x.shape[1]
        blocks = nn.functional.pad(x, (0, -length % BLOCK)).unflatten(1, (-1, BLOCK)).cumsum(2)
        before = nn.functional.pad(blocks[..., -1].cumsum(1)[:, :-1], (1, 0))
        return (blocks + before[..., None]).flatten(1)[:, :length]
