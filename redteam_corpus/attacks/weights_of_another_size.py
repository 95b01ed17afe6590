"""Has weights of another shape, and so of its own choice.

layer: correctness
mechanism: Weights that match in nothing are not loaded, and a zero weight saves the product.
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
        self.linear = nn.Linear(size, size + 1)

    def forward(self, x):
        size = x.shape[1]
        return torch.relu(x @ self.linear.weight[:size].t() + self.linear.bias[:size])
