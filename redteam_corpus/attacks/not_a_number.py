"""Returns NaN everywhere.

layer: correctness
mechanism: Every comparison with NaN is false, so a checker that asks "is any error too large?" hears no.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.full_like(a, float("nan"))
