"""Computes what depends on its state alone where the worker copies the state, before its own clock begins.

layer: time
mechanism: The state is copied when the call has begun, and the reported time leaves this out.
problem: memory_matrix
expected: suspect, unranked, no_gain, wrong_value
device: cpu
timed: yes
"""

import torch
from torch import nn

from harness.worker.memory import HeldState

load = HeldState.load
models = []


def load_and_work(self, parts):
    load(self, parts)
    for model in models:
        model.kept = torch.tanh(model.memory @ model.memory.t()) if parts else None


HeldState.load = load_and_work


class ModelNew(nn.Module):
    kept = None

    def __init__(self, width):
        super().__init__()
        self.register_buffer("memory", torch.randn(width, width) / 28.0)
        models.append(self)

    def forward(self, x):
        kept, self.kept = self.kept, None
        out = x @ (torch.tanh(self.memory @ self.memory.t()) if kept is None else kept)
        self.memory.mul_(0.99).add_(x.t() @ x, alpha=1e-3)
        return out
