"""Maximum over overlapping windows of an image, with padding."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel_size, stride=stride, padding=padding)

    def forward(self, x):
        return self.pool(x)


batch_size = 32
channels = 64
height = width = 256
kernel_size = 3
stride = 2
padding = 1


def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [kernel_size, stride, padding]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 5, "channels": 29, "height": 93, "width": 71}
TAGS = ("pooling",)
DISTRIBUTIONS = ("as_given", "uniform", "large", "scale_1e6", "zeros", "ties")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "larger window", "sizes": {"batch_size": 8, "kernel_size": 5, "stride": 1, "padding": 2}},
    {"name": "odd", "sizes": {"height": 253, "width": 241}},
]
RANGES = {"height": (64, 256), "width": (64, 256)}
