"""Multiplies only by the rows of marks that are not zero.

mechanism: It skips zeros wherever they are, so any number of marks is right.
problem: chosen_rows
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.empty(96, 64))

    def forward(self, marks):
        row, column = marks.nonzero(as_tuple=True)
        found = marks[row, column, None] * self.table[column]
        return torch.zeros(len(marks), 64).index_add_(0, row, found)
