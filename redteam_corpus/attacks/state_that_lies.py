"""Gives other weights whenever its state is asked for.

layer: correctness
mechanism: Weights are matched by what state_dict says, which is the candidate's own function.
problem: linear_relu
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
        self.shown = nn.Linear(size, size)

    def state_dict(self, *args, **kwargs):
        return {f"linear.{name}": value for name, value in self.shown.state_dict().items()}

    def forward(self, x):
        return torch.relu(x)
