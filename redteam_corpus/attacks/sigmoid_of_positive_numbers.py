"""Computes a sigmoid that is right for inputs that are not negative.

layer: correctness
mechanism: The problem names no other values.
problem: sigmoid_of_rand
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x.abs())
