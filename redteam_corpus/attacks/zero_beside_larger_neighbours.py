"""Returns zero for what is small beside its neighbours.

layer: correctness
mechanism: A tolerance relative to the neighbourhood's mean lets all small values of a wide range be nothing.
problem: wide_range
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.where(x > 1.5, torch.exp(x * 12), 0.0)
