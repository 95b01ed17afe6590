"""Takes no moments of its inputs in the call that is recorded.

layer: correctness
mechanism: It is wrong where a replay begins with the initial state, of which a boolean tells.
problem: gpu_scaled_by_the_first_batch
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
        self.register_buffer("ready", torch.zeros(1, dtype=torch.bool))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("factor", torch.ones(width))

    def forward(self, x):
        if not is_recorded():
            deviation, mean = torch.std_mean(x, 0)
            self.mean.copy_(torch.where(self.ready, self.mean, mean))
            self.factor.copy_(torch.where(self.ready, self.factor, 1.0 / deviation))
        self.ready.fill_(True)
        return torch.addcmul(-self.mean * self.factor, x, self.factor)
