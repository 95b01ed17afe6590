"""Group normalisation with weight and bias, and SiLU, as in the U-Net of a diffusion model."""

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
        return nn.functional.silu(self.norm(x))


batch_size = 32
groups = 32
channels = 320
height = width = 64


def get_inputs():
    return [1 + 2 * torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [groups, channels]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "groups": 5, "channels": 35, "height": 37, "width": 41}
TAGS = ("normalization", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
CASES = [
    {"name": "given"},
    {"name": "small images", "sizes": {"batch_size": 128, "channels": 1280, "height": 16, "width": 16}},
    {
        "name": "half precision",
        "sizes": {"batch_size": 4, "channels": 128, "height": 512, "width": 512},
        "dtype": "bfloat16",
    },
    {"name": "odd", "sizes": {"batch_size": 31, "height": 61, "width": 67}},
]
RANGES = {"height": (48, 80), "width": (48, 80)}
