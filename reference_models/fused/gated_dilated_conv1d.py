"""Dilated convolution, tanh of one half of the channels times sigmoid of the other, as in WaveNet."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.conv = nn.Conv1d(channels, 2 * channels, 3, padding=dilation, dilation=dilation)

    def forward(self, x):
        values, gates = self.conv(x).chunk(2, dim=1)
        return torch.tanh(values) * torch.sigmoid(gates)


batch_size = 16
channels = 128
length = 16384
dilation = 8


def get_inputs():
    return [2 * torch.randn(batch_size, channels, length)]


def get_init_inputs():
    return [channels, dilation]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "channels": 19, "length": 503, "dilation": 3}
TAGS = ("conv", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "far apart", "sizes": {"dilation": 512}},
    {"name": "one recording", "sizes": {"batch_size": 1, "channels": 64, "length": 524288}},
    {"name": "odd", "sizes": {"batch_size": 15, "channels": 125, "length": 16001, "dilation": 27}},
]
RANGES = {"length": (4096, 16384), "dilation": (1, 64)}
