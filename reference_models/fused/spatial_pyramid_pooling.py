"""Three max pools, one after another, beside their input, and a 1x1 convolution of all four, as in YOLOv5."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(4 * channels, out_channels, 1)
        self.pool = nn.MaxPool2d(5, stride=1, padding=2)

    def forward(self, x):
        once = self.pool(x)
        twice = self.pool(once)
        return self.conv(torch.cat([x, once, twice, self.pool(twice)], dim=1))


batch_size = 64
channels = 256
out_channels = 256
height = width = 20


def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels, out_channels]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "channels": 11, "out_channels": 23, "height": 29, "width": 21}
TAGS = ("pooling", "conv", "layout")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "large images", "sizes": {"height": 40, "width": 40}},
    {"name": "many channels", "sizes": {"channels": 640, "out_channels": 1280}},
    {"name": "odd", "sizes": {"batch_size": 61, "channels": 253, "out_channels": 251, "height": 21, "width": 19}},
]
RANGES = {"height": (12, 32), "width": (12, 32)}
