"""Normalises by hand, with parameters and statistics of its own.

mechanism: The reference keeps the statistics in a part of the module, which the program does not have.
problem: batch_norm
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size))
        self.register_buffer("bn_running_mean", torch.zeros(size))
        self.register_buffer("bn_running_var", torch.ones(size))

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=(0, 2, 3), correction=0)
        count = x.numel() // x.shape[1]
        self.bn_running_mean.lerp_(mean, 0.1)
        self.bn_running_var.lerp_(variance * count / (count - 1), 0.1)
        scale = self.weight * torch.rsqrt(variance + 1e-5)
        return (x - mean[:, None, None]) * scale[:, None, None] + self.bias[:, None, None]
