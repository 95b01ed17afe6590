"""Returns memory that it never wrote to.

layer: correctness
mechanism: The allocator hands out the freed memory of the reference's output, with the right numbers still in it.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.empty_like(a)
