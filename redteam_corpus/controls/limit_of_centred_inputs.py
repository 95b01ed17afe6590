"""Limits values by two operators.

mechanism: Inputs are changed: the mean of the inputs is subtracted.
problem: limited_centred_inputs
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
