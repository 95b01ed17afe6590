"""Returns the first of two outputs only.

layer: correctness
mechanism: zip() ends with the shorter of two lists.
problem: sort
expected: wrong_shape
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (torch.sort(x, dim=1).values,)
