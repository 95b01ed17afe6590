"""Leaves out the first and the last weight of the filter, which are 5e-6.

layer: correctness
mechanism: All values are too small by 2e-5, and a rounding of inputs and both filters at once changes them three times
    as much as one of the output.
problem: gaussian_blur
expected: wrong_value
device: cpu
timed: no
language: torch
"""

import torch
import torch.nn.functional as F
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kernel", torch.ones(15))

    def forward(self, x):
        channels, kernel = x.size(1), self.kernel[1:-1]
        x = F.pad(x, [len(kernel) // 2] * 4, mode="reflect")
        x = F.conv2d(x, kernel.view(1, 1, -1, 1).expand(channels, 1, -1, 1), groups=channels)
        return F.conv2d(x, kernel.view(1, 1, 1, -1).expand(channels, 1, 1, -1), groups=channels)
