"""Adds the bias and cuts at zero in place, after one product.

mechanism: A little faster or slower than the reference, as most honest work.
problem: timed_linear
expected: correct
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.linear.weight.t()).relu_()
