"""Adds the vectors of each code up as a product with marks.

mechanism: Another algorithm for sums, and products with codes that have any length.
problem: codes_by_directions
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
        self.book = nn.Parameter(torch.randn(12, 8))

    def forward(self, x):
        nearest = ((x @ self.book.T) / self.book.norm(dim=1)).argmax(dim=1)
        marks = torch.nn.functional.one_hot(nearest, len(self.book)).to(x.dtype).T
        counts = marks.sum(dim=1, keepdim=True)
        return torch.where(counts > 0, marks @ x / counts.clamp(min=1), x[: len(self.book)])
