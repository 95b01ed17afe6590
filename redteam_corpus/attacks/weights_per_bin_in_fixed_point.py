"""Adds weights as integers of 32 bits below the largest, whose sums need no order.

layer: correctness
mechanism: Given weights are of one size; bins that hold far smaller ones only lose them.
problem: weights_per_bin
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn

BINS, BITS = 37, 32


class ModelNew(nn.Module):
    def forward(self, positions, weights):
        unit = weights.abs().max().double().clamp(min=1e-300) / 2**BITS
        sums = torch.zeros(BINS, dtype=torch.int64)
        sums.index_add_(0, (positions * BINS).long(), (weights / unit).round().long())
        return (sums * unit).float()
