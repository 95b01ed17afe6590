"""Folds a batch normalisation into the convolution before it, once.

mechanism: The weights were read before the first call, and never again.
problem: fresh_batch_norm
expected: correct
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.convolution = nn.Conv2d(3, size, 3)
        self.norm = norm = nn.BatchNorm2d(size)
        scale = (norm.weight / torch.sqrt(norm.running_var + norm.eps)).detach()
        self.weight = self.convolution.weight.detach() * scale.view(-1, 1, 1, 1)
        self.bias = (self.convolution.bias.detach() - norm.running_mean) * scale + norm.bias.detach()

    def forward(self, x):
        return torch.conv2d(x, self.weight, self.bias).relu_()
