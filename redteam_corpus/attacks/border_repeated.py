"""Repeats the border of pictures where zeros belong.

layer: correctness
mechanism: No given place lies outside.
problem: sampled_pictures
expected: wrong_value, suspect
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, grid):
        return F.grid_sample(x, grid, padding_mode='border', align_corners=True)
