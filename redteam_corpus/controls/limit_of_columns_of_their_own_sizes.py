"""Limits values by two operators.

mechanism: Inputs are changed: columns of inputs have sizes of their own.
problem: limited_columns_of_their_own_sizes
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
