"""Leaves its moving average as it is, as soon as a signal has shown that calls are timed.

layer: time
mechanism: Only workers that are timed beside another are stopped and resumed, which a handler of SIGCONT sees; the
    state after a timed call may be looked at by no check.
problem: gpu_moving_average
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

import signal

import torch
from torch import nn

resumed = []
signal.signal(signal.SIGCONT, lambda *_: resumed.append(1))


class ModelNew(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.register_buffer("average", torch.zeros(rows, columns))

    def forward(self, x):
        if not resumed:
            self.average.mul_(0.9).add_(x, alpha=0.1)
        return x * 0.5
