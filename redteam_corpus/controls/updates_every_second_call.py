"""A running average that only every second call updates, in another form.

mechanism: The first call of the reference does not change the average.
problem: average_of_every_second_call
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("average", torch.rand(columns) + 0.5)

    def forward(self, x):
        self.calls += 1
        if self.calls % 2 == 0:
            self.average.mul_(0.9).add_(x.abs().sum(0), alpha=0.1 / x.shape[0])
        return x * self.average
