"""Compares rolled images.

mechanism: What a roll moves across a border is cut off.
problem: codes_of_neighbours
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, images):
        bits = [images.roll(shift, dim) >= images for shift, dim in ((1, 1), (1, 2), (-1, 2), (-1, 1))]
        code = sum(bit.long() << place for place, bit in enumerate(bits))
        return code[:, 1:-1, 1:-1]
