"""Marks brighter neighbours only, so that flat areas have none.

layer: correctness
mechanism: Random images have no equal neighbours.
problem: codes_of_neighbours
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, images):
        middle, code = images[:, 1:-1, 1:-1], 0
        for bit, (row, column) in enumerate(((0, 1), (1, 0), (1, 2), (2, 1))):
            near = images[:, row : row + middle.shape[1], column : column + middle.shape[2]]
            code = code | ((near > middle).long() << bit)
        return code
