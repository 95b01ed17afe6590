"""Declares bias before weight, as plain parameters of a submodule.

mechanism: The state has the reference's names in another order, and other initial values.
problem: linear_relu
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class Affine(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(size))
        self.weight = nn.Parameter(torch.empty(size, size).uniform_(-0.1, 0.1))


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = Affine(size)

    def forward(self, x):
        return torch.relu(torch.einsum("nk,mk->nm", x, self.linear.weight) + self.linear.bias)
