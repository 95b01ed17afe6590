"""Returns zeros of the right shape.

layer: correctness
mechanism: Where outputs are small and the tolerance is absolute, zero is near enough.
problem: small_outputs
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.zeros_like(a)
