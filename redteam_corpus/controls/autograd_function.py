"""Works in an autograd function of its own, with gradients turned on.

mechanism: Outputs may require gradients, and belong to a graph.
problem: linear_relu
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x > 0)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        with torch.enable_grad():
            self.linear.weight.requires_grad_(True)
            return Relu.apply(self.linear(x))
