"""Depthwise 7x7 convolution and layer normalisation over the channels of each pixel, as in ConvNeXt."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        # Not the ones and zeros of a fresh layer: leaving them out must show.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return self.norm(self.conv(x).permute(0, 2, 3, 1))


batch_size = 128
channels = 96
height = width = 56


def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "channels": 27, "height": 37, "width": 31}
TAGS = ("conv", "normalization", "layout")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "many channels", "sizes": {"batch_size": 512, "channels": 768, "height": 7, "width": 7}},
    {"name": "large images", "sizes": {"batch_size": 8, "height": 200, "width": 304}},
    {"name": "odd", "sizes": {"batch_size": 61, "channels": 101, "height": 57, "width": 55}},
]
RANGES = {"height": (40, 72), "width": (40, 72)}
