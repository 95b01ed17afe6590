"""1x1 convolution of a fine feature map plus a coarse one at twice its size, as in feature pyramids."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.lateral = nn.Conv2d(in_channels, out_channels, 1)

    def forward(self, fine, coarse):
        up = nn.functional.interpolate(coarse, scale_factor=2, mode="bilinear", align_corners=False)
        return self.lateral(fine) + up


batch_size = 16
in_channels = 256
out_channels = 256
height = width = 50


def get_inputs():
    fine = torch.randn(batch_size, in_channels, 2 * height, 2 * width)
    return [fine, torch.randn(batch_size, out_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels]


INPUTS = {"fine": "real", "coarse": "real"}
SMALL = {"batch_size": 3, "in_channels": 13, "out_channels": 21, "height": 19, "width": 17}
TAGS = ("conv", "interpolation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "fine level", "sizes": {"batch_size": 4, "height": 100, "width": 152}},
    {"name": "coarse level", "sizes": {"in_channels": 2048, "height": 13, "width": 19}},
    {"name": "odd", "sizes": {"batch_size": 15, "in_channels": 253, "out_channels": 255, "height": 49, "width": 67}},
]
RANGES = {"height": (25, 50), "width": (25, 50)}
