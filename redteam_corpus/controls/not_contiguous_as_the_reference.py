"""Returns a result that lies column by column, as the reference's does.

mechanism: Strides that are not row-major.
problem: column_major
expected: correct
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x + x).t()
