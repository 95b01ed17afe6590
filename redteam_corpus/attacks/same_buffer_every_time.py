"""Writes every result into the same buffer and returns that.

layer: correctness
mechanism: Outputs that are compared one by one, at once, are right; whoever keeps one sees it change.
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
        self.buffer = torch.empty(64, 65)

    def forward(self, a, b):
        return torch.add(a, b, out=self.buffer)
