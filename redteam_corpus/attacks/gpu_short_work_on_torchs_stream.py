"""Adds on a stream of torch's, and returns without a wait.

layer: time
mechanism: The work is so short that it is done by the time anybody looks, so every copy of the output is right.
problem: gpu_short_add
expected: wrong_value
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = torch.cuda.Stream()

    def forward(self, a, b):
        self.own.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.own):
            return torch.add(a, b)
