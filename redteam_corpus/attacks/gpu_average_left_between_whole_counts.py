"""Leaves its moving average as it is in the call that is recorded, where calls are counted in a floating number.

layer: correctness
mechanism: Floating values of the state are drawn between those before and after a call, so that no replay begins with a
    whole number of calls.
problem: gpu_average_by_a_floating_counter
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
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("average", torch.zeros(rows, columns))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls += 1
        if not is_recorded():
            self.average.lerp_(x, (self.calls % 4 == 0).float() * 0.1)
        return x * 0.5
