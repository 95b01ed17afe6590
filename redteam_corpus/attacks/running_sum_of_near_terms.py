"""Leaves terms out of a running sum of exponentials that are more than 12 below the largest so far.

layer: correctness
mechanism: One such term is lost in rounding; thousands after one large term are not.
problem: running_logsumexp
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        is_far = x < x.cummax(-1).values - 12
        return x.masked_fill(is_far, -torch.inf).logcumsumexp(-1)
