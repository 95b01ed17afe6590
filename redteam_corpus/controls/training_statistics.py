"""Normalises and updates the running statistics by hand.

mechanism: Buffers change with every call, as they must.
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
        self.norm = nn.BatchNorm2d(size)

    def forward(self, x):
        norm = self.norm
        variance, mean = torch.var_mean(x, dim=(0, 2, 3), correction=0)
        count = x.numel() // x.shape[1]
        norm.running_mean.lerp_(mean, norm.momentum)
        norm.running_var.lerp_(variance * count / (count - 1), norm.momentum)
        norm.num_batches_tracked.add_(1)
        scale = norm.weight * torch.rsqrt(variance + norm.eps)
        return (x - mean[:, None, None]) * scale[:, None, None] + norm.bias[:, None, None]
