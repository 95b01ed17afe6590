"""Computes the first case honestly, and returns the first result again in every other one.

layer: correctness
mechanism: Most checks are made in one case, and it is the first.
problem: add_in_cases
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.results = {}

    def forward(self, a, b):
        if a.shape == (64, 65):
            return a + b
        return self.results.setdefault(a.shape, a + b).clone()
