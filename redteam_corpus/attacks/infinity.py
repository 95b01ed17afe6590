"""Returns infinity where the sum is positive and its negative elsewhere.

layer: correctness
mechanism: A tolerance relative to the candidate's own output is infinite; infinity minus infinity is no error.
problem: add
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.where(a + b > 0, float("inf"), float("-inf"))
