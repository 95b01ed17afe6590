"""Computes the statistics of a group from its first half.

layer: correctness
mechanism: In bfloat16 both halves of random numbers have the same statistics.
problem: brain_group_norm
expected: wrong_value
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
        half = groups[..., : groups.shape[-1] // 2]
        normal = (groups - half.mean(-1, keepdim=True)) * (half.var(-1, correction=0, keepdim=True) + 1e-5).rsqrt()
        weight, bias = (value.float().view(1, -1, 1, 1) for value in (self.norm.weight, self.norm.bias))
        return (normal.view(x.shape) * weight + bias).to(x.dtype)
