"""Keeps a pool of buffers, and uses one again only when nobody has it any more.

mechanism: Outputs come back at the same addresses, as those of an attack do that uses buffers in turn.
problem: large_add
expected: correct
device: cpu
timed: yes
"""

import sys

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = []

    def take(self, like):
        for buffer in self.pool:
            if sys.getrefcount(buffer) == 3:
                return buffer
        self.pool.append(torch.empty_like(like))
        return self.pool[-1]

    def forward(self, a, b):
        return torch.add(a, b, out=self.take(a))
