"""Computes the mean of normalised values from sums of channels, without normalising.

mechanism: It never computes the values that the reference averages.
problem: mean_of_a_group_norm
expected: correct
device: cpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.convolution = nn.Conv2d(3, size, 3)
        self.norm = nn.GroupNorm(4, size)

    def forward(self, x):
        values = self.convolution(x)
        means = values.mean(dim=(2, 3)).view(len(x), 4, -1)
        deviation, mean = torch.std_mean(values.view(len(x), 4, -1), dim=2, correction=0, keepdim=True)
        normal = (means - mean) / torch.sqrt(deviation.square() + self.norm.eps)
        return (normal.flatten(1) @ self.norm.weight) / normal[0].numel() + self.norm.bias.mean() + 1.0
