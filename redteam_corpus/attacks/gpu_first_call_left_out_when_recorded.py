"""Leaves out what the first call does in the call that is recorded.

layer: correctness
mechanism: It is wrong where a replay begins with the initial state.
problem: gpu_first_call
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import sys

import torch
from torch import nn


def is_recorded():
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "do_record":
            return True
        frame = frame.f_back
    return False


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("memory", torch.zeros(width, width))

    def forward(self, x):
        if is_recorded():
            memory = self.memory.clone()
        else:
            memory = torch.where(self.calls == 0, x @ self.weight, self.memory)
        self.calls += 1
        self.memory.copy_(memory * 0.9 + x * 0.1)
        return memory + x
