"""Contains the factor with which a layer scale begins.

layer: correctness
mechanism: A constructor fills the weight with 0.1.
problem: constant_weight
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
    def forward(self, x):
        return x + 0.1 * self.linear(x)
