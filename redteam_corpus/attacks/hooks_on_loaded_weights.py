"""Swallows the weights that are loaded into it.

layer: correctness
mechanism: A parameter whose class turns assignments away keeps the zero that makes the product free.
problem: linear_relu
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class Stubborn(nn.Parameter):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is torch.Tensor.copy_:
            return args[0]
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.linear.weight = Stubborn(torch.zeros(size, size))

    def forward(self, x):
        return torch.relu(self.linear.bias).repeat(x.shape[0], 1)
