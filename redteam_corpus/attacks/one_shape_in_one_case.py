"""Adds into an output of the one shape that the widest of its cases has.

layer: correctness
mechanism: Perhaps only one case, secretly chosen, is called with other shapes.
problem: nearby_add_in_cases
expected: wrong_shape, wrong_value, runtime_error
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        if a.shape[1] < 500:
            return a + b
        out = torch.zeros(64, 1027)
        out[: a.shape[0], : a.shape[1]] = a + b
        return out
