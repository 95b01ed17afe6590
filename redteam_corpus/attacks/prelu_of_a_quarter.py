"""Contains the slope with which PReLU begins.

layer: correctness
mechanism: A constructor fills the weight with 0.25.
problem: prelu
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn
F = nn.functional


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
    def forward(self, x):
        return F.leaky_relu(x, 0.25)
