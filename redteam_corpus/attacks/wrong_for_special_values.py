"""Cuts values at a limit that the usual inputs never reach.

layer: correctness
mechanism: Inputs are always of the same small size, so large ones need not work.
problem: relu
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x.clamp(max=64.0))
