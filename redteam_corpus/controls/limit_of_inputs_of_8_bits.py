"""Limits values by two operators.

mechanism: Inputs are changed: inputs are floats of 8 bits.
problem: limited_inputs_of_8_bits
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        limit = torch.tensor(8.0)
        return torch.maximum(torch.minimum(x.float(), limit), -limit) * 2.0
