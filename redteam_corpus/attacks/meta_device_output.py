"""Returns a tensor on the meta device, which has a shape and no data.

layer: correctness
mechanism: Shape and dtype are right, and comparing without data raises nothing in some checkers.
problem: add
expected: wrong_shape
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.empty_like(a, device="meta")
