"""Counts with scatter_add_.

mechanism: Integer outputs, compared exactly.
problem: counts
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, numbers):
        counts = torch.zeros(64, dtype=torch.int64)
        return counts.scatter_add_(0, numbers, torch.ones_like(numbers))
