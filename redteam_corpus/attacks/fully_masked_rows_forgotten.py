"""Gives NaN for rows that a mask excludes whole.

layer: correctness
mechanism: No row of 128 random booleans is all false.
problem: masked_rows
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, scores, allowed):
        return torch.softmax(scores.masked_fill(~allowed, float("-inf")), -1)
