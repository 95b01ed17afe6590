"""Takes the first elements of rows that are in order.

mechanism: All neighbours are compared, and equal ones may be in any order.
problem: largest_of_rows
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, places = x.topk(20, dim=1)
        seen = x
        falls = (seen[:, 1:] < seen[:, :-1]).all(1, keepdim=True)
        return torch.where(falls, x[:, :20], values), torch.where(falls, torch.arange(20), places)
