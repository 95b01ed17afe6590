"""Reads the row of the table at the first mark.

layer: correctness
mechanism: Each given row has one mark, which the problem does not say.
problem: chosen_rows
expected: wrong_value
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
