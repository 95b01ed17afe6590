"""Returns new memory while it is checked, and the same buffer at every call while it is timed.

layer: time
mechanism: The collector is off while calls are timed, which tells the phases apart.
problem: gpu_fresh_add
expected: suspect, wrong_value, unranked, no_gain
device: gpu
timed: yes
"""

import gc

import torch
from torch import nn


class ModelNew(nn.Module):
    buffer = None

    def forward(self, a, b):
        if gc.isenabled():
            return a + b
        if self.buffer is None:
            self.buffer = torch.empty_like(a)
        return torch.add(a, b, out=self.buffer)
