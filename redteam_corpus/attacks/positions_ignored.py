"""Rotates by the place in the sequence instead of by the given position.

layer: correctness
mechanism: get_inputs always gives 0, 1, 2 and so on.
problem: positions
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, positions):
        size = x.size(-1) // 2
        positions = torch.arange(x.size(1))
        angles = positions.unsqueeze(-1) * 10000.0 ** (-torch.arange(size) / size)
        first, second = x.chunk(2, -1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)
