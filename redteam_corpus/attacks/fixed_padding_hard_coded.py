"""Contains how many of the last tokens are padding.

layer: correctness
mechanism: The mask is the same in every call, whatever the seed.
problem: fixed_padding
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        return x[:, :-32].mean(1)
