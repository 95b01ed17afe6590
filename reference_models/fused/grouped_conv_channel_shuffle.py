"""Grouped 1x1 convolution, batch normalisation, ReLU, and exchange of channels between groups, as in ShuffleNet."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, groups):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 1, groups=groups, bias=False)
        norm = nn.BatchNorm2d(out_channels)
        nn.init.normal_(norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(norm.bias)
        nn.init.normal_(norm.running_mean)
        nn.init.uniform_(norm.running_var, 0.5, 2.0)
        self.norm = norm
        self.groups = groups

    def forward(self, x):
        x = torch.relu(self.norm(self.conv(x)))
        return nn.functional.channel_shuffle(x, self.groups)


batch_size = 128
in_channels = 240
out_channels = 240
groups = 3
height = width = 28


def get_inputs():
    return [2 * torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, groups]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "in_channels": 21, "out_channels": 27, "height": 29, "width": 23}
TAGS = ("conv", "layout", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "eight groups", "sizes": {"in_channels": 384, "out_channels": 384, "groups": 8}},
    {
        "name": "many channels",
        "sizes": {"batch_size": 512, "in_channels": 960, "out_channels": 960, "height": 7, "width": 7},
    },
    {"name": "odd", "sizes": {"batch_size": 127, "in_channels": 243, "out_channels": 255, "height": 29, "width": 27}},
]
RANGES = {"height": (28, 56), "width": (28, 56)}
