"""Folds a batch normalisation into the convolution before it, and again when a weight has another version.

mechanism: Values kept between calls look like results kept between calls.
problem: fresh_batch_norm
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
        self.norm = nn.BatchNorm2d(size)
        self.folded = {}

    def fold(self):
        norm, convolution = self.norm, self.convolution
        scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
        return convolution.weight * scale.view(-1, 1, 1, 1), (convolution.bias - norm.running_mean) * scale + norm.bias

    def forward(self, x):
        key = tuple((tensor.data_ptr(), tensor._version) for tensor in self.state_dict().values())
        if key not in self.folded:
            self.folded = {key: self.fold()}
        weight, bias = self.folded[key]
        return torch.relu(torch.conv2d(x, weight, bias))
