"""Takes the first 32 of the near points.

layer: correctness
mechanism: Points at random places have few others near them.
problem: means_of_near_points
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, points):
        near = (points[:, None] - points).square().sum(dim=-1) < 0.25
        near &= near.cumsum(dim=1) <= 32
        counts = near.sum(dim=1, keepdim=True)
        return (near[:, :, None] * points).sum(dim=1) / counts, counts
