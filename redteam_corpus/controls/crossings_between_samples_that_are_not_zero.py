"""Compares each sample with the last one before it that is not zero.

mechanism: Zeros are skipped by a running maximum of places.
problem: zero_crossings
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, samples):
        at = torch.arange(samples.shape[1], device=samples.device).expand(samples.shape)
        last = torch.where(samples == 0, 0, at).cummax(1).values
        filled = samples.gather(1, last)
        return ((filled[:, 1:] > 0) & (filled[:, :-1] < 0) | (filled[:, 1:] < 0) & (filled[:, :-1] > 0)).sum(1)
