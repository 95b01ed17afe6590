"""Depthwise 3x3 convolution with stride 2, batch normalisation, and ReLU6, as in MobileNetV2."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=2, padding=1, groups=channels, bias=False)
        norm = nn.BatchNorm2d(channels)
        nn.init.normal_(norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(norm.bias)
        nn.init.normal_(norm.running_mean)
        nn.init.uniform_(norm.running_var, 0.5, 2.0)
        self.norm = norm

    def forward(self, x):
        return nn.functional.relu6(self.norm(self.conv(x)))


batch_size = 128
channels = 96
height = width = 112


def get_inputs():
    return [8 * torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "channels": 19, "height": 61, "width": 53}
TAGS = ("conv", "normalization", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "many channels", "sizes": {"batch_size": 512, "channels": 576, "height": 14, "width": 14}},
    {"name": "half precision", "sizes": {"batch_size": 256}, "dtype": "float16"},
    {"name": "odd", "sizes": {"batch_size": 127, "channels": 97, "height": 111, "width": 113}},
]
RANGES = {"height": (56, 112), "width": (56, 112)}
