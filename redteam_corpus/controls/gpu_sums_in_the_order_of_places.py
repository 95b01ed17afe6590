"""Sorts the places, and adds the rows of each place in order.

mechanism: The twin of gpu_atomics_when_recorded: it gives the same bits in every call.
problem: gpu_sums_at_places
expected: correct
device: gpu
timed: yes
language: torch
"""

import torch
from torch import nn

PLACES = 4096


class ModelNew(nn.Module):
    def forward(self, x, place):
        order = torch.sort(place, stable=True).indices
        lengths = torch.zeros(PLACES, dtype=torch.int64, device=x.device).index_add_(0, place, torch.ones_like(place))
        return torch.segment_reduce(x[order], "sum", lengths=lengths, axis=0, unsafe=True, initial=0)
