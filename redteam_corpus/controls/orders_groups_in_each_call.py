"""Sorts its groups as numbers of 16 bits in each call.

mechanism: Keys are shorter than the reference's, and all groups are read.
problem: rows_in_the_order_of_groups
expected: correct
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, rows, width, groups):
        super().__init__()
        self.register_buffer("group", torch.randint(0, groups, (rows,)))
        self.scale = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        order = torch.sort(self.group.to(torch.int16), stable=True).indices
        return x.index_select(0, order).mul_(self.scale)
