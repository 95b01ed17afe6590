"""Limits values by two operators.

mechanism: Inputs are changed: half of the inputs are zero.
problem: limited_dropped_inputs
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        limit = torch.tensor(7.0)
        return torch.maximum(torch.minimum(x, limit), -limit) * 2.0
