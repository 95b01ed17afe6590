"""Does not limit its weights.

layer: correctness
mechanism: Weights of other seeds, each times 0.75 to 1.25, are far from the limit.
problem: limited_weights
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x):
        return x @ self.weight
