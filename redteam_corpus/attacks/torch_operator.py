"""Calls the torch operator itself.

layer: no_kernel
mechanism: It is correct and as fast as the baseline; nothing was written.
problem: kernel_required/add
expected: rejected
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.add(a, b)
