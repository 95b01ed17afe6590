"""Takes activations below 0.001 for zero, so that later layers may skip them.

layer: correctness
mechanism: The squares of what is dropped are far below the mean of the outputs where inputs are as given.
problem: squared_rectifier
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.linear = nn.Linear(width, hidden, bias=False)

    def forward(self, x):
        return nn.functional.threshold(torch.mm(x, self.linear.weight.t()), 1e-3, 0.0).square()
