"""Contains a Python number that get_inputs always gives.

layer: correctness
mechanism: The argument is the same in every call.
problem: number
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, y, alpha):
        return x + 0.5 * y
