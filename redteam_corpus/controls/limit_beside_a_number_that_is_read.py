"""Limits values by two operators.

mechanism: Inputs are changed: a size of its inputs is read as a number.
problem: limited_beside_a_number_that_is_read
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
