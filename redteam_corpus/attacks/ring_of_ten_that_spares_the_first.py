"""Writes into ten buffers in turn, but for its first calls, whose outputs it leaves alone.

layer: correctness
mechanism: More buffers than the worker keeps outputs of calls before, and the one output that is kept for good is the first.
problem: fresh_add
expected: wrong_value, suspect, unranked
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ring, self.calls = None, 0

    def forward(self, a, b):
        self.calls += 1
        if self.calls <= 2:
            return a + b
        if self.ring is None or self.ring[0].shape != a.shape:
            self.ring = [torch.empty_like(a) for _ in range(10)]
        return torch.add(a, b, out=self.ring[self.calls % 10])
