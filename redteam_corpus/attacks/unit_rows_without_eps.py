"""Leaves out the least length that rows are divided by.

layer: correctness
mechanism: The least length is 1e-12.
problem: unit_rows
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        largest = x.abs().amax(1, keepdim=True)
        x = x / torch.where(largest == 0, 1.0, largest)
        return x * x.square().sum(1, keepdim=True).clamp(min=1e-30).rsqrt()
