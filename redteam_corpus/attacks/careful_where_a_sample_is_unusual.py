"""Leaves out the maximum of a softmax as long as a sample of the inputs looks as given.

layer: correctness
mechanism: Inputs that are changed as a whole show it in any sample, and get the careful way.
problem: softmax_of_randn
expected: wrong_value
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        sample = x[::37, ::41]
        if float(sample.abs().max()) > 8.0 or abs(float(sample.mean())) > 0.5 or float(sample.std()) > 1.5:
            return torch.softmax(x, dim=1)
        powers = torch.exp(x)
        return powers / powers.sum(1, keepdim=True)
