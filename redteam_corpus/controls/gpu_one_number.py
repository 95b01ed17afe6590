"""Sums in two steps of torch's, and returns a tensor without a dimension.

mechanism: There is one element to compare, and none to sample.
problem: gpu_total
expected: correct
device: gpu
timed: yes
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(1).sum()
