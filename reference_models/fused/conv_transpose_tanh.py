"""Transposed convolution with bias and tanh: the last layer of an image generator."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.ConvTranspose2d(in_channels, out_channels, 4, stride=2, padding=1)
        nn.init.normal_(self.conv.weight, std=0.05)

    def forward(self, x):
        return torch.tanh(self.conv(x))


batch_size = 64
in_channels = 64
out_channels = 3
height = width = 128


def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "in_channels": 37, "out_channels": 3, "height": 39, "width": 33}
TAGS = ("conv", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "small images", "sizes": {"batch_size": 1024, "height": 32, "width": 32}},
    {"name": "large images", "sizes": {"batch_size": 2, "in_channels": 128, "height": 512, "width": 512}},
    {"name": "odd", "sizes": {"batch_size": 61, "in_channels": 61, "height": 127, "width": 93}},
]
RANGES = {"height": (96, 128), "width": (96, 128)}
