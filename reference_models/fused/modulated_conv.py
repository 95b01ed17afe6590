"""Convolution whose weights are scaled per sample and then normalised per filter, as in StyleGAN2."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_channels, in_channels, 3, 3))

    def forward(self, x, style):
        batch, _, height, width = x.shape
        weight = self.weight * style[:, None, :, None, None]
        weight = weight * torch.rsqrt(weight.square().sum(dim=(2, 3, 4), keepdim=True) + 1e-8)
        x = nn.functional.conv2d(x.view(1, -1, height, width), weight.flatten(0, 1), padding=1, groups=batch)
        return x.view(batch, -1, height, width)


batch_size = 16
in_channels = 128
out_channels = 128
height = width = 64


def get_inputs():
    return [torch.randn(batch_size, in_channels, height, width), 1 + torch.randn(batch_size, in_channels)]


def get_init_inputs():
    return [in_channels, out_channels]


INPUTS = {"x": "real", "style": "real"}
SMALL = {"batch_size": 3, "in_channels": 11, "out_channels": 19, "height": 29, "width": 31}
TAGS = ("conv", "normalization")
DISTRIBUTIONS = ("as_given", "uniform", "tiny", "zeros")
CASES = [
    {"name": "given"},
    {"name": "many channels", "sizes": {"in_channels": 512, "out_channels": 512, "height": 16, "width": 16}},
    {
        "name": "large images",
        "sizes": {"batch_size": 4, "in_channels": 64, "out_channels": 64, "height": 256, "width": 256},
    },
    {"name": "odd", "sizes": {"batch_size": 13, "in_channels": 123, "out_channels": 131, "height": 61, "width": 67}},
]
RANGES = {"height": (32, 64), "width": (32, 64)}
