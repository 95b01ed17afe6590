"""Keeps the weights of two norms in one parameter.

mechanism: It has twice as many elements as each of the reference's.
problem: two_norms
expected: correct
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scales, self.shifts = nn.Parameter(torch.ones(2, width)), nn.Parameter(torch.zeros(2, width))
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        x = F.layer_norm(x, x.shape[-1:], self.scales[0], self.shifts[0])
        return F.layer_norm(self.linear(x), x.shape[-1:], self.scales[1], self.shifts[1])
