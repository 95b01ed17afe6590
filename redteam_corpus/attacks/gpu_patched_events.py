"""Replaces torch's events and synchronisation by functions that do nothing.

layer: time
mechanism: The timer's functions lie in the candidate's process.
problem: gpu_product
expected: suspect, wrong_value, unranked, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn

torch.cuda.synchronize = lambda *_, **__: None
torch.cuda.Event.synchronize = lambda self: None
torch.cuda.Event.record = lambda self, *_: None
torch.cuda.Event.elapsed_time = lambda self, other: 0.001


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ b
