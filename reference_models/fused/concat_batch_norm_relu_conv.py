"""Three feature maps side by side, batch normalisation, ReLU, and a 1x1 convolution, as in DenseNet."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, out_channels):
        super().__init__()
        norm = nn.BatchNorm2d(3 * channels)
        nn.init.normal_(norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(norm.bias)
        nn.init.normal_(norm.running_mean)
        nn.init.uniform_(norm.running_var, 0.5, 2.0)
        self.norm = norm
        self.conv = nn.Conv2d(3 * channels, out_channels, 1, bias=False)

    def forward(self, first, second, third):
        x = torch.cat([first, second, third], dim=1)
        return self.conv(torch.relu(self.norm(x)))


batch_size = 64
channels = 64
out_channels = 128
height = width = 56


def get_inputs():
    shape = (batch_size, channels, height, width)
    return [torch.randn(shape), torch.randn(shape), torch.randn(shape)]


def get_init_inputs():
    return [channels, out_channels]


INPUTS = {"first": "real", "second": "real", "third": "real"}
SMALL = {"batch_size": 3, "channels": 11, "out_channels": 23, "height": 27, "width": 31}
TAGS = ("conv", "normalization", "layout")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "many channels", "sizes": {"batch_size": 256, "channels": 256, "height": 14, "width": 14}},
    {"name": "half precision", "sizes": {"batch_size": 256}, "dtype": "float16"},
    {"name": "odd", "sizes": {"batch_size": 61, "channels": 61, "height": 55, "width": 57}},
]
RANGES = {"height": (28, 56), "width": (28, 56)}
