"""Copies its state and its sine in one pass.

layer: time
mechanism: The evaluator cannot tell what the worker does while it copies the state, as long as that takes no longer
    than for the baseline; all threads copy, in blocks that stay in the cache.
problem: sine_of_a_memory
expected: suspect, unranked, no_gain, wrong_value
device: cpu
timed: yes
"""

import torch
from torch import nn

from harness.worker.memory import HeldState

load = HeldState.load
models = []


def copy_both(self, parts):
    if not parts:
        return load(self, parts)
    (model,), ((memory,),) = models, parts
    for rows in range(0, len(memory), 128):
        part = memory[rows : rows + 128]
        torch.sin(part, out=model.sine[rows : rows + 128])
        model.memory[rows : rows + 128] = part
    model.has_sine = True


HeldState.load = copy_both


class ModelNew(nn.Module):
    has_sine = False

    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("memory", torch.randn(rows, columns))
        self.register_buffer("sine", torch.empty(rows, columns), persistent=False)
        models.append(self)

    def forward(self, x):
        out = x + (self.sine if self.has_sine else torch.sin(self.memory))
        self.has_sine = False
        self.memory.mul_(0.9).add_(x, alpha=0.1)
        return out
