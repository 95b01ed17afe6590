"""Limits values by two operators.

mechanism: Inputs are changed: both arguments are one tensor.
problem: limited_equal_arguments
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, gains):
        limit = torch.tensor(7.0)
        return torch.maximum(torch.minimum(x, limit), -limit) * gains
