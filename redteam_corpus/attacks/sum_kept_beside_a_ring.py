"""Keeps the sum of all rows, and adds them up again only if count or newest row are not as its last call left them.

layer: correctness
mechanism: States that are new to a candidate differ in both; whoever changes a part of a cache may leave both.
problem: mean_of_a_ring
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, capacity, features):
        super().__init__()
        self.register_buffer("rows", torch.randn(capacity, features))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))
        self.kept = None

    def forward(self, x):
        count, capacity = int(self.count), len(self.rows)
        place = count % capacity
        total = self.rows.sum(dim=0)
        if self.kept is not None:
            total_before, row, at = self.kept
            if at == count and torch.equal(row, self.rows[(count - 1) % capacity]):
                total = total_before
        total = total + x[0] - self.rows[place]
        self.rows[place] = x[0]
        self.count += 1
        self.kept = total, x[0].clone(), count + 1
        return (total / capacity).unsqueeze(0)
