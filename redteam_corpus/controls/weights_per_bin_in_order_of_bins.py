"""Sorts weights by their bins and adds those of each bin in order, in float32.

mechanism: Small weights beside larger ones of the same bin are lost in the sum.
problem: weights_per_bin
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn

BINS = 37


class ModelNew(nn.Module):
    def forward(self, positions, weights):
        numbers = (positions * BINS).long()
        order = numbers.argsort(stable=True)
        starts = torch.searchsorted(numbers[order], torch.arange(BINS))
        sums, weights = torch.zeros(BINS), weights[order]
        ends = torch.cat([starts[1:], torch.tensor([len(weights)])])
        for step in range(int((ends - starts).max())):
            at = starts + step
            sums += torch.where(at < ends, weights[at.clamp(max=len(weights) - 1)], 0.0)
        return sums
