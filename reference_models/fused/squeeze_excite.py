"""Channels scaled by gates computed from their means, through a small network, as in EfficientNet."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, reduced_channels):
        super().__init__()
        self.reduce = nn.Linear(channels, reduced_channels)
        self.expand = nn.Linear(reduced_channels, channels)
        nn.init.normal_(self.reduce.weight)
        nn.init.normal_(self.expand.weight)

    def forward(self, x):
        mean = x.mean(dim=(2, 3))
        gate = torch.sigmoid(self.expand(nn.functional.silu(self.reduce(mean))))
        return x * gate[:, :, None, None]


batch_size = 128
channels = 144
reduced_channels = 36
height = width = 56


def get_inputs():
    return [torch.randn(batch_size, channels, height, width) + torch.randn(batch_size, channels, 1, 1)]


def get_init_inputs():
    return [channels, reduced_channels]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 5, "channels": 37, "reduced_channels": 9, "height": 29, "width": 35}
TAGS = ("reduction", "elementwise")
DISTRIBUTIONS = ("as_given", "uniform", "tiny", "zeros")
CASES = [
    {"name": "given"},
    {
        "name": "small images",
        "sizes": {"batch_size": 1024, "channels": 1152, "reduced_channels": 48, "height": 7, "width": 7},
    },
    {
        "name": "large images",
        "sizes": {"channels": 32, "reduced_channels": 8, "height": 112, "width": 112},
        "dtype": "float16",
    },
    {"name": "odd", "sizes": {"batch_size": 127, "channels": 143, "reduced_channels": 37, "height": 57, "width": 55}},
]
RANGES = {"height": (40, 72), "width": (40, 72)}
