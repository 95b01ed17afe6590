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


SMALL = {"batch_size": 3, "in_channels": 13, "out_channels": 21, "height": 19, "width": 17}
TAGS = ("conv", "interpolation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
