"""ReLU, normalisation by the neighbouring channels, and overlapping max pooling, as in AlexNet."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, neighbours, alpha, beta):
        super().__init__()
        self.norm = nn.LocalResponseNorm(neighbours, alpha=alpha, beta=beta)
        self.pool = nn.MaxPool2d(3, stride=2)

    def forward(self, x):
        return self.pool(self.norm(torch.relu(x)))


batch_size = 128
channels = 96
height = width = 55
neighbours = 5
alpha = 0.5
beta = 0.75


def get_inputs():
    return [3 * torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [neighbours, alpha, beta]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 3, "channels": 37, "height": 29, "width": 33}
TAGS = ("normalization", "pooling", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "many channels", "sizes": {"batch_size": 256, "channels": 256, "height": 27, "width": 27}},
    {"name": "more neighbours", "sizes": {"channels": 192, "neighbours": 9}},
    {"name": "odd", "sizes": {"batch_size": 127, "channels": 97, "height": 54, "width": 59}},
]
RANGES = {"height": (27, 55), "width": (27, 55)}
