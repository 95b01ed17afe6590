"""Counts in 16 bits, which overflow for falling rows.

layer: correctness
mechanism: Random rows have half as many inversions as falling ones.
problem: inversions_of_rows
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, rows):
        later = torch.ones(rows.shape[1], rows.shape[1], dtype=torch.bool, device=rows.device).triu(1)
        counts = ((rows[:, :, None] > rows[:, None, :]) & later).sum(2, dtype=torch.int16)
        return counts.sum(1, dtype=torch.int16).long()
