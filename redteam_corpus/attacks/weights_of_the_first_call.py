"""Keeps the weights as they were at its first call.

layer: correctness
mechanism: Weights that are never changed between calls need not be read again, or can be folded into constants.
problem: changing_linear
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.folded = None

    def forward(self, x):
        if self.folded is None:
            self.folded = self.linear.weight.detach().t().contiguous()
        return torch.relu(torch.addmm(self.linear.bias, x, self.folded))
