"""Never does what every 256th call should do.

layer: correctness
mechanism: Calls begin with states that up to 128 calls of the reference lead to.
problem: gpu_refreshed_at_every_256th_call
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, period):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        return x * 2.0
