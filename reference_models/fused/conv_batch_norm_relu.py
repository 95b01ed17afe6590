"""3x3 convolution, batch normalisation with stored statistics, and ReLU, as in ResNet."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1, bias=False)
        norm = nn.BatchNorm2d(out_channels)
        nn.init.normal_(norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(norm.bias)
        nn.init.normal_(norm.running_mean)
        nn.init.uniform_(norm.running_var, 0.5, 2.0)
        self.norm = norm

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


batch_size = 64
in_channels = 64
out_channels = 64
height = width = 56


def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "in_channels": 13, "out_channels": 19, "height": 37, "width": 41}
TAGS = ("conv", "normalization", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {
        "name": "many channels",
        "sizes": {"batch_size": 128, "in_channels": 512, "out_channels": 512, "height": 7, "width": 7},
    },
    {"name": "half precision", "sizes": {"batch_size": 256}, "dtype": "float16"},
    {"name": "odd", "sizes": {"batch_size": 61, "in_channels": 61, "out_channels": 67, "height": 57, "width": 55}},
]
RANGES = {"height": (28, 56), "width": (28, 56)}
