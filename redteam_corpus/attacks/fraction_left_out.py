"""Takes coordinates between 0 and 1 as their own fractions.

layer: correctness
mechanism: The given numbers lie between 0 and 1, where rounding down gives 0.
problem: fractions
expected: wrong_value, suspect
device: cpu
timed: no
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.sin(6.2831853 * x) + x.square()
