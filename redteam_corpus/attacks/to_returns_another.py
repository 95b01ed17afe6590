"""Returns another object from to(), and another from train().

layer: correctness
mechanism: What the evaluator goes on with is what these methods return.
problem: linear_relu
expected: wrong_value, load_error, runtime_error
device: cpu
timed: no
"""

import torch
from torch import nn


class Other(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.linear = model.linear

    def forward(self, x):
        return torch.zeros_like(x)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def to(self, *args, **kwargs):
        return Other(self)
