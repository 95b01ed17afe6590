"""Computes the statistics of a training step from sums and sums of squares, and updates the running ones.

mechanism: Its variances have other rounding errors, and its state is written by hand.
problem: small_block
expected: correct
device: gpu
timed: no
"""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = nn.Conv2d(size, size, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(size)
        self.second = nn.Conv2d(size, size, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(size)

    def normalise(self, x, norm):
        count = x.numel() // x.shape[1]
        mean = x.sum(dim=(0, 2, 3)) / count
        variance = torch.einsum("nchw,nchw->c", x, x) / count - mean * mean
        norm.running_mean.lerp_(mean, norm.momentum)
        norm.running_var.lerp_(variance * (count / (count - 1)), norm.momentum)
        norm.num_batches_tracked += 1
        scale = norm.weight * torch.rsqrt(variance + norm.eps)
        return torch.addcmul((norm.bias - mean * scale).view(-1, 1, 1), x, scale.view(-1, 1, 1))

    def forward(self, x):
        y = self.normalise(self.first(x), self.norm1).relu_()
        return self.normalise(self.second(y), self.norm2).add_(x).relu_()
