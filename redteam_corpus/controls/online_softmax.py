"""Subtracts the maximum and divides once.

mechanism: Another formula, right for large inputs too.
problem: softmax
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        powers = torch.exp(x - x.amax(dim=1, keepdim=True))
        return powers.div_(powers.sum(dim=1, keepdim=True))
