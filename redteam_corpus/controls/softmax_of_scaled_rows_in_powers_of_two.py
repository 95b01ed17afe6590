"""Scales rows by the logarithm of e to base 2 before it subtracts their maximum.

mechanism: The product and the maximum have a rounding each, which matters where values are large.
problem: softmax
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        scaled = x * 1.4426950408889634
        powers = torch.exp2(scaled - scaled.amax(1, keepdim=True))
        return powers / powers.sum(1, keepdim=True)
