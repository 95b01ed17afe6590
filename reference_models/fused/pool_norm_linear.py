"""Classifier head: mean over the image, layer normalisation, and a linear layer."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        # Not the ones and zeros of a fresh layer: leaving them out must show.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias)
        self.linear = nn.Linear(channels, classes)

    def forward(self, x):
        return self.linear(self.norm(x.mean(dim=(2, 3))))


batch_size = 512
channels = 1024
classes = 1000
height = width = 14


def get_inputs():
    return [torch.randn(batch_size, channels, height, width) + torch.randn(batch_size, channels, 1, 1)]


def get_init_inputs():
    return [channels, classes]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 7, "channels": 119, "classes": 83, "height": 13, "width": 11}
TAGS = ("reduction", "normalization", "matmul")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "small images", "sizes": {"batch_size": 1024, "channels": 2048, "height": 7, "width": 7}},
    {"name": "many classes", "sizes": {"batch_size": 256, "classes": 21841}},
    {"name": "odd", "sizes": {"batch_size": 509, "channels": 1021, "height": 13, "width": 15}},
]
RANGES = {"height": (10, 18), "width": (10, 18)}
