"""Leaves out the rectifier of a scaled input.

layer: correctness
mechanism: Inputs between 0 and 1 never reach it, and it reads no input itself.
problem: positive_chain
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.sqrt(x * 2.0 + 1.0)
