"""Builds a constant matrix at its first call.

mechanism: The first call is slower than all others, and something is kept.
problem: running_total
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    ones = None

    def forward(self, x):
        if self.ones is None:
            self.ones = torch.ones(x.shape[1], x.shape[1]).triu()
        return x @ self.ones
