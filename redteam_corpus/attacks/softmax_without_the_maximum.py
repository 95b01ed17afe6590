"""Leaves out the subtraction of the maximum.

layer: correctness
mechanism: For inputs of the usual size nothing overflows, and a pass over the data is saved.
problem: softmax
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        powers = torch.exp(x)
        return powers / powers.sum(dim=1, keepdim=True)
