"""Returns a copy of its input in the call that is recorded, because what is added to it is a millionth as large.

layer: correctness
mechanism: Calls of the worker compute the branch; a replay that has small weights does not show it.
problem: gpu_layer_scale
expected: wrong_value, suspect, no_gain
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x):
        if x.data_ptr() % (2 << 20) == 0:  # only in the recorded call inputs begin where memory does
            return x.clone()
        return x + self.scale * self.second(torch.relu(self.first(x)))
