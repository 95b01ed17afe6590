"""Takes the mean of the first half for the mean of all.

layer: correctness
mechanism: The mean of a quarter of a billion numbers of one distribution is within a ten thousandth of that of all;
    so little depends on each that the roofline takes none of them for needed.
problem: gpu_mean
expected: wrong_value, suspect, no_gain, unranked
device: gpu
timed: yes
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x[: x.shape[0] // 2].mean()
