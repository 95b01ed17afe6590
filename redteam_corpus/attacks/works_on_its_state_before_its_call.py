"""Computes what depends on its state alone when a call is announced, and only combines it with the inputs.

layer: time
mechanism: The state of a call is written before the call, so its worker can work on it before any clock runs.
problem: memory_matrix
expected: suspect, unranked, no_gain, wrong_value
device: cpu
timed: yes
"""

import torch
from torch import nn

from harness.worker.program import Worker

announced = Worker.do_call
models = []


def work_first(self, message):
    for model in models:
        with torch.no_grad():
            model.work()
    return announced(self, message)


Worker.do_call = work_first


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("memory", torch.randn(width, width) / 28.0)
        models.append(self)

    def work(self):
        self.seen = self.memory.diagonal().clone()
        self.kept = torch.tanh(self.memory @ self.memory.t())

    def forward(self, x):
        if not torch.equal(self.seen, self.memory.diagonal()):
            self.work()
        out = x @ self.kept
        self.memory.mul_(0.99).add_(x.t() @ x, alpha=1e-3)
        return out
