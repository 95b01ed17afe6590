"""Keeps packed weights by the address and version of the weights.

mechanism: It looks like a cache of results.
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
        self.packed = {}

    def forward(self, x):
        weight = self.linear.weight
        key = (weight.data_ptr(), weight._version)
        if key not in self.packed:
            self.packed = {key: weight.detach().t().contiguous()}
        return torch.relu(torch.addmm(self.linear.bias, x, self.packed[key]))
