"""Writes its results into three buffers in turn.

mechanism: An output changes three calls later, which the problem does not forbid.
problem: add
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffers, self.calls = [], 0

    def forward(self, a, b):
        if not self.buffers or self.buffers[0].shape != a.shape:
            self.buffers = [torch.empty_like(a) for _ in range(3)]
        self.calls += 1
        return torch.add(a, b, out=self.buffers[self.calls % 3])
