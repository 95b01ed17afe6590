"""Works on a tensor of one element.

mechanism: Nothing to sample, and no relative error to average.
problem: one_number
expected: correct
device: cpu
timed: no
"""

import math

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tensor([math.sin(x.item()) * 3], dtype=x.dtype)
