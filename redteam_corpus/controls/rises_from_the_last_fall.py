"""Subtracts the value after the last fall from each.

mechanism: A rise is a difference of two elements.
problem: longest_rises
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, rows):
        at = torch.arange(rows.shape[1], device=rows.device).expand(rows.shape)
        falls = torch.cat([torch.ones_like(rows[:, :1], dtype=torch.bool), rows.diff() <= 0], 1)
        begin = torch.where(falls, at, 0).cummax(1).values
        return (rows - rows.gather(1, begin)).amax(1)
