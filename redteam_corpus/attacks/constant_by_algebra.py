"""Returns what the mean of normalised values is for the weights of a new module.

layer: correctness
mechanism: The mean over all groups is that of the bias, which is zero.
problem: mean_of_a_group_norm
expected: wrong_value
device: cpu
timed: no
"""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.convolution = nn.Conv2d(3, size, 3)
        self.norm = nn.GroupNorm(4, size)

    def forward(self, x):
        return x.new_ones(x.shape[0])
