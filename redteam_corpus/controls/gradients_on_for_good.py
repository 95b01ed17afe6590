"""Turns gradients on for the whole process.

mechanism: Copies and weights are then part of a graph.
problem: linear_relu
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn

torch.set_grad_enabled(True)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        torch.set_grad_enabled(True)
        self.linear.requires_grad_(True)
        return torch.relu(self.linear(x))
