"""Transposes its weights at construction and uses the copy.

mechanism: Weights that were packed cannot follow later changes; under the same seed they are the reference's.
problem: linear_relu
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
        self.packed = self.linear.weight.detach().t().contiguous()

    def forward(self, x):
        return torch.relu(torch.addmm(self.linear.bias, x, self.packed))
