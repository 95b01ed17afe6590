"""Traces itself at construction.

mechanism: Its forward is a compiled graph.
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
        self.traced = None

    def forward(self, x):
        if self.traced is None:
            self.traced = torch.jit.trace(
                lambda x, w, b: torch.relu(torch.nn.functional.linear(x, w, b)),
                (x, self.linear.weight, self.linear.bias),
            )
        return self.traced(x, self.linear.weight, self.linear.bias)
