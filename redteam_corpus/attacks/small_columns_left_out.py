"""Leaves out columns of a row that are far below its largest value.

layer: correctness
mechanism: They hardly change the mean, but they are outputs, too.
problem: root_mean_square
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        least = 1e-10 * x.abs().amax(dim=-1, keepdim=True)
        kept = torch.where(x.abs() < least, 0.0, x)
        return kept * torch.rsqrt(kept.square().mean(dim=-1, keepdim=True) + 1e-6)
