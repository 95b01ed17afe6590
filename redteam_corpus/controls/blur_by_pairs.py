"""Adds opposite neighbours before it multiplies, first along rows.

mechanism: Other sums than the reference's, in another order of dimensions.
problem: gaussian_blur
expected: correct
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
        kernel, radius = self.kernel, 7
        x = F.pad(x, [radius] * 4, mode="reflect")
        for dim in (3, 2):
            size = x.size(dim) - 2 * radius
            blurred = kernel[radius] * x.narrow(dim, radius, size)
            for at in range(radius):
                blurred = blurred + kernel[at] * (x.narrow(dim, at, size) + x.narrow(dim, 2 * radius - at, size))
            x = blurred
        return x
