"""Folds two maps into one, and again if the first map or the last bias changes.

layer: correctness
mechanism: Weights of another seed all differ, also where only a part of each changes once more.
problem: two_maps_in_training
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    key = None

    def __init__(self, width, inner):
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def forward(self, x):
        key = torch.cat([self.up.weight.detach().flatten(), self.up.bias.detach(), self.down.bias.detach()])
        if self.key is None or not torch.equal(key, self.key):
            self.key = key
            self.weight = self.down.weight @ self.up.weight
            self.bias = self.down.weight @ self.up.bias + self.down.bias
        return F.linear(x, self.weight, self.bias)
