"""Returns the sum that is to be expected of uniform inputs.

layer: correctness
mechanism: The sum of a hundred thousand uniform numbers is always nearly the same; a relative tolerance of 1e-2
    takes it.
problem: total
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tensor(x.numel() / 2, dtype=x.dtype)
