"""Divides by at least one vector, so that codes without any become zero.

layer: correctness
mechanism: Each of few codes is the nearest one to some of many vectors.
problem: codes_by_directions
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
        self.book = nn.Parameter(torch.randn(12, 8))

    def forward(self, x):
        nearest = (x @ torch.nn.functional.normalize(self.book, dim=1).T).argmax(dim=1)
        counts = torch.bincount(nearest, minlength=len(self.book)).unsqueeze(1)
        return torch.zeros_like(self.book).index_add(0, nearest, x) / counts.clamp(min=1)
