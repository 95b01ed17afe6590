"""Counts edits along paths near the diagonal only.

layer: correctness
mechanism: Random sequences have no long common parts at other places.
problem: edits_between_words
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


BAND = 12


class ModelNew(nn.Module):
    def forward(self, first, second):
        length = first.size(1)
        places = torch.arange(length + 1, device=first.device).float()
        row = places.masked_fill(places > BAND, 1000.0).expand(len(first), -1)
        for at in range(length):
            exchanged = row[:, :-1] + (first[:, at : at + 1] != second)
            rest = torch.minimum(row[:, 1:] + 1, exchanged)
            begin = torch.full_like(rest[:, :1], at + 1)
            row = (torch.cat([begin, rest], dim=1) - places).cummin(dim=1).values + places
            row = row.masked_fill((places - at - 1).abs() > BAND, 1000.0)
        return row[:, -1]
