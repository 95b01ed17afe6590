"""Returns torch's own named tuple where a tuple is expected.

mechanism: A tuple of another class is a tuple all the same.
problem: sort
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.sort(x, dim=1, stable=True)
