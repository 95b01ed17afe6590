"""Selects rows that are due before the product, so that the others are multiplied as zeros.

mechanism: Most calls have no row that is due.
problem: gpu_rows_of_their_own_age
expected: correct
device: gpu
timed: yes
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("ages", torch.arange(width)[:, None] % 512 + 1)

    def forward(self, x):
        self.ages += 1
        due = self.ages % 1024 == 0
        return torch.where(due, torch.where(due, x, 0.0) @ self.weight, x * 2.0)
