"""Adds the first 2047 entries of each row.

layer: correctness
mechanism: No row of the given matrix has so many.
problem: rows_by_starts
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn

MOST = 2047


class ModelNew(nn.Module):
    def forward(self, starts, places, values, x):
        at = torch.arange(len(values))
        row_of = torch.searchsorted(starts, at, right=True) - 1
        kept = at[at - starts[row_of] < MOST]
        out = torch.zeros(len(starts) - 1, x.shape[1])
        return out.index_add(0, row_of[kept], x[places[kept]] * values[kept, None])
