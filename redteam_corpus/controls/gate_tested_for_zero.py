"""Skips a branch while its gate is zero, and computes it otherwise.

mechanism: It reads the gate, so it may take the short way where that is right.
problem: gated_branch
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.branch = nn.Linear(size, size)
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        if not self.gate.any():
            return x.clone()
        return torch.addcmul(x, self.gate, torch.tanh(self.branch(x)))
