"""Uses the mean and the deviation that the distribution of the inputs has.

layer: correctness
mechanism: In bfloat16 the statistics of large groups are within the tolerance of these.
problem: brain_group_norm
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.GroupNorm(2, size)

    def forward(self, x):
        weight, bias = (value.float().view(1, -1, 1, 1) for value in (self.norm.weight, self.norm.bias))
        return ((x.float() - 0.5) * 12**0.5 * weight + bias).to(x.dtype)
