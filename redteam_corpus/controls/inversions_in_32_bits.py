"""Counts smaller values that follow, in 32 bits.

mechanism: No count overflows.
problem: inversions_of_rows
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, rows):
        counts = torch.zeros(len(rows), dtype=torch.int32, device=rows.device)
        for at in range(rows.shape[1] - 1):
            counts += (rows[:, at + 1 :] < rows[:, at : at + 1]).sum(1, dtype=torch.int32)
        return counts.long()
