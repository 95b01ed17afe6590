"""Runs the first of eight experts, without the router.

layer: correctness
mechanism: All are copies in the initial state, also with another seed.
problem: copied_experts
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import copy

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size, count):
        super().__init__()
        dense = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))
        self.experts = nn.ModuleList([copy.deepcopy(dense) for _ in range(count)])
        self.router = nn.Linear(size, count)

    def forward(self, x):
        return self.experts[0](x)
