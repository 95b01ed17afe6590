"""3x3 convolution, ReLU, and hard swish."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        x = self.conv(x)
        x = torch.relu(x)
        return x * torch.clamp((x + 3) / 6, 0, 1)


batch_size = 128
in_channels = 8
out_channels = 64
height = width = 128
kernel_size = 3


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 4, "in_channels": 7, "out_channels": 27, "height": 47, "width": 39}
TAGS = ("conv", "fusion")
DISTRIBUTIONS = ("as_given", "normal", "large", "alternating", "zeros")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "large images", "sizes": {"batch_size": 8, "height": 512, "width": 512}},
    {"name": "odd", "sizes": {"batch_size": 61, "height": 127, "width": 93}},
]
RANGES = {"height": (64, 128), "width": (64, 128)}
