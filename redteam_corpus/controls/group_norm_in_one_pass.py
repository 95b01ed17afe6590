"""Normalises by the difference of the mean square and the squared mean.

mechanism: Of small values both are far below eps.
problem: gated_group_norm
expected: correct
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        rows = x.view(x.size(0), self.norm.num_groups, -1)
        mean = rows.mean(-1, keepdim=True)
        variance = (rows.square().mean(-1, keepdim=True) - mean.square()).clamp(min=0)
        normal = ((rows - mean) * (variance + self.norm.eps).rsqrt()).view_as(x)
        gates = normal * self.norm.weight[:, None, None] + self.norm.bias[:, None, None]
        return gates / (1 + (-gates).exp())
