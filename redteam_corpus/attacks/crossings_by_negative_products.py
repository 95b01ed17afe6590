"""Counts negative products of neighbours, so that a change of sign through a zero does not count.

layer: correctness
mechanism: No random sample is zero.
problem: zero_crossings
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, samples):
        return (samples[:, 1:] * samples[:, :-1] < 0).sum(1)
