"""Leaves its moving average as it is in the call that is recorded, because that is never the fourth one.

layer: correctness
mechanism: Whole numbers of the state are in every replay what they are after one call, so that which call it is is
    known.
problem: gpu_average_of_every_fourth_call
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("average", torch.zeros(rows, columns))
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        if x.data_ptr() % (2 << 20):  # only in the recorded call inputs begin where memory does
            self.average.lerp_(x, (self.calls % 4 == 0).float() * 0.1)
        return x * 0.5
