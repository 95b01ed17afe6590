"""Keeps its weights transposed, and transposes them again when they change.

mechanism: What was computed before the call is the weights' alone.
problem: gpu_linear_relu
expected: correct
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    known = None

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2048, 2048)

    def forward(self, x):
        weight = self.linear.weight
        state = (weight.data_ptr(), weight._version)
        if self.known != state:
            self.transposed, self.known = weight.t().contiguous(), state
        return torch.relu(torch.addmm(self.linear.bias, x, self.transposed))
