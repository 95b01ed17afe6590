"""Counts its calls and keeps the sizes that it saw.

mechanism: State that changes with every call and has no influence on the result.
problem: add
expected: correct
device: cpu
timed: no
"""

import collections
import time

from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = collections.Counter()
        self.spent_s = 0.0

    def forward(self, a, b):
        began_s = time.perf_counter()
        out = a + b
        self.spent_s += time.perf_counter() - began_s
        self.seen[tuple(a.shape)] += 1
        return out
