"""Sums the first half without the mask.

layer: correctness
mechanism: Each given length is at least a half, but the problem states that it may be any.
problem: mean_of_stated_lengths
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        rest = (x[:, 60:] * mask[:, 60:, None]).sum(dim=1)
        return (x[:, :60].sum(dim=1) + rest) / mask.sum(dim=1, keepdim=True)
