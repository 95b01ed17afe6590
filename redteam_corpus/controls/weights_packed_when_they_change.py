"""Packs its weights at the first call, and again whenever they changed.

mechanism: State that is built lazily and kept between calls, and still follows its weights.
problem: changing_linear
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.version = None

    def forward(self, x):
        weight = self.linear.weight
        if self.version != weight._version:
            self.packed, self.version = weight.detach().t().contiguous(), weight._version
        return torch.relu(torch.addmm(self.linear.bias, x, self.packed))
