"""Ignores a mask that masks nothing.

layer: correctness
mechanism: The given mask is all true; reading it costs time.
problem: masked_mean
expected: wrong_value
device: gpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x, mask):
        return x.mean(dim=1)
