"""Hands the arrays to numpy.

layer: no_kernel
mechanism: Another library's kernel is not the model's either.
problem: kernel_required/add
expected: rejected
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.from_numpy(a.numpy() + b.numpy())
