"""Computes in float32 where inputs and outputs are bfloat16, with sums of squares.

mechanism: It is more accurate than the reference in some places, and less in others.
problem: brain_group_norm
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.GroupNorm(2, size)

    def forward(self, x):
        groups = x.float().view(x.shape[0], 2, -1)
        mean = groups.mean(-1, keepdim=True)
        scale = torch.rsqrt(groups.square().mean(-1, keepdim=True) - mean.square() + self.norm.eps)
        normal = ((groups - mean) * scale).view(x.shape)
        weight, bias = (value.float().view(1, -1, 1, 1) for value in (self.norm.weight, self.norm.bias))
        return (normal * weight + bias).bfloat16()
