"""Rounds coordinates towards zero.

layer: correctness
mechanism: The given coordinates are positive; the problem does not say so.
problem: voxels_of_points
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, points):
        cells = (points * 2).int()
        keys = (cells[:, 0] + 31 * cells[:, 1] + 961 * cells[:, 2]) & 255
        return points - 0.5 * cells - 0.25, torch.bincount(keys, minlength=256)
