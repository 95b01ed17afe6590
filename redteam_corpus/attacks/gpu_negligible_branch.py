"""Returns its input, because what is added to it is a millionth as large.

layer: correctness
mechanism: The tolerance is relative to the sum, to which both matrices together contribute less than it allows.
problem: gpu_layer_scale
expected: wrong_value, suspect, no_gain, unranked
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
        return x.clone()
