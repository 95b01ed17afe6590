"""Adds the least length instead of taking the larger one.

mechanism: The two differ where the length is near the least one.
problem: unit_rows
expected: correct
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x / (x.square().sum(1, keepdim=True).sqrt() + 1e-12)
