"""Computes an exponential as a power of a power.

mechanism: Outputs over fifty orders of magnitude, each right to some digits.
problem: wide_range
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.exp(x.double() * 6).square().float()
