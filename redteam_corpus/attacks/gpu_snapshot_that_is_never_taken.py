"""Never stores the inputs of the 500th call.

layer: correctness
mechanism: The reference writes a buffer in each call, but changes it in the 500th only.
problem: gpu_snapshot
expected: wrong_value, suspect
device: gpu
timed: yes
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("snapshot", torch.zeros(width, width))

    def forward(self, x):
        self.calls += 1
        return x * 2.0
