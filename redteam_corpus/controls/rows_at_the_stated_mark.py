"""Reads the row of the table at the first mark.

mechanism: The problem states that each row has one mark.
problem: rows_by_stated_marks
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
        return self.table[marks.argmax(dim=1)]
