"""Returns device memory that it never wrote to.

layer: correctness
mechanism: The allocator hands out what the reference's output was freed from.
problem: gpu_add
expected: wrong_value
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.empty_like(a)
