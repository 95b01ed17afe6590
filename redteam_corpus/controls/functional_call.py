"""Calls a submodule through torch.func with its own weights.

mechanism: Weights are handed over in a dict.
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

    def forward(self, x):
        return torch.relu(torch.func.functional_call(self.linear, dict(self.linear.named_parameters()), (x,)))
