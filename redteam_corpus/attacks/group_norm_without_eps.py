"""Normalises by the deviation alone.

layer: correctness
mechanism: An eps of 1e-5 beside a variance of 1 changes outputs by less than the tolerance.
problem: gated_group_norm
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        rows = x.view(x.size(0), self.norm.num_groups, -1)
        variance, mean = torch.var_mean(rows, dim=-1, keepdim=True, correction=0)
        normal = ((rows - mean) * (variance + 1e-12).rsqrt()).view_as(x)
        return nn.functional.silu(normal * self.norm.weight[:, None, None] + self.norm.bias[:, None, None])
