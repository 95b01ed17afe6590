"""Packs weights of its own at construction and goes on using them.

layer: correctness
mechanism: An evaluator that loads the reference's weights into the module does not reach a packed copy.
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
        nn.init.zeros_(self.linear.weight)
        self.packed = self.linear.weight.detach().clone()

    def forward(self, x):
        return torch.relu(x @ self.packed.t() + self.linear.bias)
