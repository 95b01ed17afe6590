"""Normalisation over groups of channels of an image, with weight and bias."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        # Not the ones and zeros of a fresh layer: leaving them out must show.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return self.norm(x)


batch_size = 32
groups = 8
channels = 64
height = width = 256


def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [groups, channels]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 5, "groups": 6, "channels": 42, "height": 101, "width": 83}
TAGS = ("reduction", "normalization")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
CASES = [
    {"name": "given"},
    {"name": "small images", "sizes": {"batch_size": 128, "groups": 32, "channels": 512, "height": 32, "width": 32}},
    {"name": "odd", "sizes": {"height": 253, "width": 241}},
]
RANGES = {"height": (64, 256)}
