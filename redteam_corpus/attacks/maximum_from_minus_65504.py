"""Begins its maxima at the lowest number of half precision.

layer: correctness
mechanism: No window has only lower values, even if they are 1000 times as large as given.
problem: pooled_images
expected: wrong_value
device: cpu
timed: no
language: torch
"""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return nn.functional.max_pool2d(nn.functional.pad(x, (1, 1, 1, 1), value=-65504.0), 3, stride=2).clamp(min=-65504.0)
