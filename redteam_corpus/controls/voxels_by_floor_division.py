"""Rounds coordinates down by a correction of truncated ones.

mechanism: Another form of the same cells.
problem: voxels_of_points
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, points):
        cells = (points * 2).long()
        cells -= (cells > points * 2).long()
        keys = (cells[:, 0] + 31 * cells[:, 1] + 961 * cells[:, 2]) & 255
        return points - (0.5 * cells + 0.25), torch.bincount(keys, minlength=256)
