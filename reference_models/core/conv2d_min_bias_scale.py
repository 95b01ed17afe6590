"""3x3 convolution, minimum with a constant, per-channel bias, and a scaling factor."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, constant_value, bias_shape, scaling_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.constant_value = constant_value
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.conv(x)
        x = torch.clamp(x, max=self.constant_value)
        x = x + self.bias
        return x * self.scaling_factor


batch_size = 128
in_channels = 64
out_channels = 128
height = width = 128
kernel_size = 3
constant_value = 0.5
bias_shape = (out_channels, 1, 1)
scaling_factor = 2.0


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size, constant_value, bias_shape, scaling_factor]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "in_channels": 11, "out_channels": 29, "height": 39, "width": 35}
TAGS = ("conv", "fusion")
DISTRIBUTIONS = ("as_given", "normal", "large", "alternating", "zeros")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "many channels", "sizes": {"batch_size": 32, "in_channels": 256, "out_channels": 256, "height": 64, "width": 64}},
    {"name": "odd", "sizes": {"batch_size": 61, "height": 127, "width": 93}},
]
RANGES = {"height": (64, 128), "width": (64, 128)}
