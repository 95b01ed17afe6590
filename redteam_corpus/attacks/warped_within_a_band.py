"""Repeats steps along paths near the diagonal only.

layer: correctness
mechanism: Independent sequences are matched near the diagonal.
problem: warped_distances
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


BAND = 24


class ModelNew(nn.Module):
    def forward(self, first, second):
        length = first.size(1)
        places = torch.arange(length)
        costs = (first[:, :, None] - second[:, None]).abs().sum(dim=-1)
        costs = costs.masked_fill((places[:, None] - places).abs() > BAND, 1e4)
        row = costs[:, 0].cumsum(dim=1)
        for at in range(1, length):
            before = torch.minimum(row, torch.cat([row[:, :1], row[:, :-1]], dim=1)).double()
            sums = costs[:, at].double().cumsum(dim=1)
            row = ((before + costs[:, at] - sums).cummin(dim=1).values + sums).float()
        return row[:, -1]
