"""Multiplies its weights once, and uses the product in the call that is recorded.

layer: time
mechanism: Weights may change between calls, and other calls multiply them; a replay may write only inputs
    and state that calls change, so that the weights of all replays are the same.
problem: gpu_changing_weights
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    kept = None

    def __init__(self, width):
        super().__init__()
        self.first = nn.Parameter(torch.randn(width, width) / 64.0)
        self.second = nn.Parameter(torch.randn(width, width) / 64.0)

    def forward(self, x):
        if x.data_ptr() % (2 << 20):  # only in the recorded call inputs begin where memory does
            return x @ torch.tanh(self.first @ self.second)
        if self.kept is None:
            self.kept = torch.tanh(self.first @ self.second)
        return x @ self.kept
