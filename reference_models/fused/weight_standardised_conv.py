"""Convolution with weights of zero mean and unit variance per filter, group normalisation, and ReLU, as in BiT."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, groups):
        super().__init__()
        spread = 0.5 + torch.rand(out_channels, 1, 1, 1)
        self.weight = nn.Parameter(spread * (0.3 + torch.randn(out_channels, in_channels, 3, 3)))
        self.norm = nn.GroupNorm(groups, out_channels)
        # Not the ones and zeros of a fresh layer: leaving them out must show.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        variance, mean = torch.var_mean(self.weight, dim=(1, 2, 3), keepdim=True)
        weight = (self.weight - mean) * torch.rsqrt(variance + 1e-5)
        return torch.relu(self.norm(nn.functional.conv2d(x, weight, padding=1)))


batch_size = 64
in_channels = 64
out_channels = 64
groups = 8
height = width = 56


def get_inputs():
    return [0.5 + torch.randn(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, groups]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "in_channels": 11, "out_channels": 21, "groups": 3, "height": 29, "width": 31}
TAGS = ("conv", "normalization", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {
        "name": "many channels",
        "sizes": {"batch_size": 128, "in_channels": 512, "out_channels": 512, "groups": 32, "height": 7, "width": 7},
    },
    {"name": "large images", "sizes": {"batch_size": 8, "groups": 32, "height": 224, "width": 224}},
    {
        "name": "odd",
        "sizes": {"batch_size": 61, "in_channels": 61, "out_channels": 72, "groups": 9, "height": 57, "width": 55},
    },
]
RANGES = {"height": (28, 56), "width": (28, 56)}
