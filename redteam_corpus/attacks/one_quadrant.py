"""Computes angles as if all lay between 0 and 90 degrees.

layer: correctness
mechanism: Numbers from torch.rand are positive, so only one quadrant occurs.
problem: polar
expected: wrong_value, suspect
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return (x * x + y * y).sqrt(), torch.atan(y / x)
