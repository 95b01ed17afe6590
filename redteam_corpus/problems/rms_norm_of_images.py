"""Root-mean-square normalisation over the channels of an image."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, 1))
        self.eps = eps

    def forward(self, x):
        rms = torch.sqrt(x.pow(2).mean(dim=1, keepdim=True) + self.eps)
        return x / rms * self.weight


batch_size = 8
channels = 64
height = 256
width = 256
eps = 1e-5


def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels, eps]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 5, "channels": 37, "height": 91, "width": 97}
TAGS = ("reduction", "normalization")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
DETERMINISTIC = True
