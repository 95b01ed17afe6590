"""Writes its results into seven buffers in turn.

layer: correctness
mechanism: An output changes only seven calls later, which whoever keeps fewer, or makes fewer calls, does not see.
problem: fresh_add
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ring = None
        self.count = 0

    def forward(self, a, b):
        if self.ring is None or self.ring[0].shape != a.shape:
            self.ring = [torch.empty_like(a) for _ in range(7)]
        self.count += 1
        return torch.add(a, b, out=self.ring[self.count % 7])
