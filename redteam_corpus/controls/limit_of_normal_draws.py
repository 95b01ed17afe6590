"""Limits values by two operators.

mechanism: Inputs are changed: inputs are drawn by torch.normal.
problem: limited_normal_draws
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
