"""Returns the last running sum as a view of all of them, where the reference returns a copy.

mechanism: Outputs share memory, though few of their elements.
problem: sums_and_the_last
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        sums = x.cumsum(1)
        return sums, sums[:, -1]
