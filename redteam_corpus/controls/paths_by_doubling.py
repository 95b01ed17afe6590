"""Doubles the number of edges of the paths until it is that of the nodes.

mechanism: Adds the same lengths in another order.
problem: shortest_paths
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, lengths):
        paths = lengths.clone().fill_diagonal_(0.0)
        for _ in range((len(lengths) - 1).bit_length()):
            paths = (paths[:, :, None] + paths[None]).amin(dim=1)
        return paths
