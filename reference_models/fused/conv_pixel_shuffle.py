"""Convolution whose channels become pixels of a larger image, with PReLU, as in super-resolution."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, factor):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels * factor**2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(factor)
        self.activation = nn.PReLU(channels)
        nn.init.uniform_(self.activation.weight, 0.1, 0.5)

    def forward(self, x):
        return self.activation(self.shuffle(self.conv(x)))


batch_size = 8
channels = 64
height = width = 128
factor = 2


def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels, factor]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 2, "channels": 11, "height": 37, "width": 29}
TAGS = ("conv", "layout", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "factor 3", "sizes": {"height": 96, "width": 96, "factor": 3}},
    {"name": "whole frame", "sizes": {"batch_size": 1, "channels": 32, "height": 540, "width": 960}},
    {"name": "odd", "sizes": {"batch_size": 7, "height": 127, "width": 93}},
]
RANGES = {"height": (64, 128), "width": (64, 128)}
