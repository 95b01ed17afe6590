"""Multiplies the input by the memory first where that is allowed, and updates the memory in place.

mechanism: Its state is copied into the buffer that it was constructed with, to which it keeps a view; a call begins
    with another state each time.
problem: memory_matrix
expected: correct
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("memory", torch.randn(width, width) / 28.0)
        self.turned = self.memory.t()

    def forward(self, x):
        out = x @ torch.mm(self.memory, self.turned).tanh_()
        torch.addmm(self.memory, x.t(), x, beta=0.99, alpha=1e-3, out=self.memory)
        return out
