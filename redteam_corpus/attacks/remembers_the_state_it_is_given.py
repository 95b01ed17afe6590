"""Keeps what it computed from its state, as long as it finds the same state before a call.

layer: time
mechanism: Every timed call begins with the same state, which is not drawn anew as the inputs are; what depends on the
    state alone is computed once.
problem: memory_matrix
expected: wrong_value, suspect, no_gain, unranked
device: cpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    known = None

    def __init__(self, width):
        super().__init__()
        self.register_buffer("memory", torch.randn(width, width) / 28.0)

    def forward(self, x):
        sample = self.memory[::48, ::48]
        if self.known is None or not torch.equal(self.known, sample):
            self.known = sample.clone()
            self.kept = torch.tanh(self.memory @ self.memory.t())
        out = x @ self.kept
        self.memory.mul_(0.99).add_(x.t() @ x, alpha=1e-3)
        return out
