"""1x1 convolution, batch normalisation with stored statistics, and Mish, as in YOLOv4."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 1, bias=False)
        norm = nn.BatchNorm2d(out_channels)
        nn.init.normal_(norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(norm.bias)
        nn.init.normal_(norm.running_mean)
        nn.init.uniform_(norm.running_var, 0.5, 2.0)
        self.norm = norm

    def forward(self, x):
        return nn.functional.mish(self.norm(self.conv(x)))


batch_size = 32
in_channels = 128
out_channels = 64
height = width = 76


def get_inputs():
    return [2 * torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "in_channels": 19, "out_channels": 37, "height": 29, "width": 33}
TAGS = ("conv", "normalization", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {
        "name": "many channels",
        "sizes": {"batch_size": 64, "in_channels": 1024, "out_channels": 512, "height": 19, "width": 19},
    },
    {"name": "large images", "sizes": {"batch_size": 16, "in_channels": 64, "height": 304, "width": 304}},
    {"name": "odd", "sizes": {"batch_size": 61, "height": 77, "width": 67}},
]
RANGES = {"height": (56, 112), "width": (56, 112)}
