"""Returns the constant that all outputs are near to.

layer: correctness
mechanism: Where all outputs are nearly equal, one number stands for them within a relative tolerance.
problem: nearly_ones
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full_like(x, 1.0005)
