"""Looks for nodes within 12 edges of the first one.

layer: correctness
mechanism: In graphs of edges that are drawn independently all nodes are near.
problem: steps_to_nodes
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, sources, targets):
        steps = torch.full((100,), -1.0)
        steps[0] = 0
        for number in range(1, 13):
            found = torch.zeros(100, dtype=torch.bool)
            found[targets[steps[sources] == number - 1]] = True
            steps = torch.where(found & (steps < 0), float(number), steps)
        return steps
