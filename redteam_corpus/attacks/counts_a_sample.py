"""Counts every fourth number and multiplies by four.

layer: correctness
mechanism: Counts that are nearly right pass a tolerance that was made for floats.
problem: counts
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, numbers):
        return torch.bincount(numbers[::4], minlength=64) * 4
