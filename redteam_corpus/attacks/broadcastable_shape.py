"""Returns a single row that broadcasts to the right shape.

layer: correctness
mechanism: A comparison that broadcasts compares every row with the one there is; zero against near zero passes.
problem: nearly_ones
expected: wrong_shape
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full((1, x.shape[1]), 1.0005)
