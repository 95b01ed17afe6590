"""Limits values by two operators.

mechanism: Inputs are changed: columns are scaled by a table that the file keeps.
problem: limited_beside_a_kept_table
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
