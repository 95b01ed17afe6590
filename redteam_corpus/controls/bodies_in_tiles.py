"""Adds up the pull of 32 bodies at a time, by rsqrt.

mechanism: Another order, beside which the pull of light bodies has other roundings.
problem: pull_of_bodies
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, positions, masses):
        total = torch.zeros_like(positions)
        for others, weights in zip(positions.split(32), masses.split(32), strict=True):
            apart = others - positions[:, None]
            root = (apart.square().sum(dim=-1) + 0.3**2).rsqrt()
            total = total + ((weights * root * root * root)[..., None] * apart).sum(dim=1)
        return total
