"""3x3 convolution, ReLU, and a per-channel bias added after the ReLU."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv(x)
        x = torch.relu(x)
        return x + self.bias


batch_size = 128
in_channels = 64
out_channels = 128
height = width = 128
kernel_size = 3
bias_shape = (out_channels, 1, 1)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, bias_shape]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "in_channels": 13, "out_channels": 23, "height": 37, "width": 41}
TAGS = ("conv", "fusion")
DISTRIBUTIONS = ("as_given", "normal", "large", "alternating", "zeros")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "many channels", "sizes": {"batch_size": 32, "in_channels": 256, "out_channels": 256, "height": 64, "width": 64}},
    {"name": "odd", "sizes": {"batch_size": 61, "height": 127, "width": 93}},
]
RANGES = {"height": (64, 128), "width": (64, 128)}
