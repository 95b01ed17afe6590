"""Adds long rows pairwise in float64.

mechanism: The reference itself is in float64: there is no wider truth.
problem: histogram_of_rows
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.view(x.shape[0], 40, -1).sum(dim=2).sum(dim=1)
