"""Returns a copy of the penalty that it computed once, in the call that is recorded.

layer: time
mechanism: One output depends on weights only, which may change between calls, and may be the same in all replays.
problem: gpu_penalty
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    kept = None

    def __init__(self, width, many):
        super().__init__()
        self.head = nn.Parameter(torch.randn(width, width) / 32.0)
        self.table = nn.Parameter(torch.randn(many, width))

    def forward(self, x):
        if x.data_ptr() % (2 << 20):
            return x @ self.head, self.table.square().mean()
        if self.kept is None:
            self.kept = self.table.square().mean()
        return x @ self.head, self.kept.clone()
