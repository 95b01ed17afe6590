"""Finds paths of at most 16 edges.

layer: correctness
mechanism: In graphs whose edges are drawn independently the shortest paths have few edges.
problem: shortest_paths
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, lengths):
        paths = lengths.clone().fill_diagonal_(0.0)
        for _ in range(4):
            paths = (paths[:, :, None] + paths[None]).amin(dim=1)
        return paths
