"""Takes rows whose samples are in order for sorted ones.

layer: correctness
mechanism: Of 20 random values in order there is one row in 10^18.
problem: largest_of_rows
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values, places = x.topk(20, dim=1)
        seen = x[:, ::25]
        falls = (seen[:, 1:] <= seen[:, :-1]).all(1, keepdim=True)
        return torch.where(falls, x[:, :20], values), torch.where(falls, torch.arange(20), places)
