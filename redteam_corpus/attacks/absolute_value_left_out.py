"""Divides by the mean instead of the mean of absolute values.

layer: correctness
mechanism: The given inputs are positive.
problem: mean_size
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x / x.mean(dim=1, keepdim=True)
