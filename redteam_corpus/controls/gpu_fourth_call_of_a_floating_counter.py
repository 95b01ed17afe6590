"""Writes its moving average in every call, in memory of its own first.

mechanism: Calls are counted in a floating number, which need not be whole where states are drawn.
problem: gpu_average_by_a_floating_counter
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("average", torch.zeros(rows, columns))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        share = torch.where(self.calls % 4 == 0, 0.1, 0.0)
        self.average.add_((x - self.average).mul_(share))
        return x * 0.5
