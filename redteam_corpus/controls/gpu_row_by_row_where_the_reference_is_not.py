"""Returns rows side by side where the reference returns a transposed view.

mechanism: Values and shape are the reference's, strides are not.
problem: gpu_column_sums
expected: correct
device: gpu
timed: yes
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return (a + b).t().contiguous()
