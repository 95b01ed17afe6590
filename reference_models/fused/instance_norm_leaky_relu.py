"""Instance normalisation of a volume with weight and bias, and leaky ReLU, as in segmentation networks."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, slope):
        super().__init__()
        self.norm = nn.InstanceNorm3d(channels, affine=True)
        # Not the ones and zeros of a fresh layer: leaving them out must show.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias)
        self.slope = slope

    def forward(self, x):
        return nn.functional.leaky_relu(self.norm(x), self.slope)


batch_size = 2
channels = 32
depth = height = width = 96
slope = 0.1


def get_inputs():
    return [1 + 2 * torch.randn(batch_size, channels, depth, height, width)]


def get_init_inputs():
    return [channels, slope]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 2, "channels": 7, "depth": 19, "height": 23, "width": 29}
TAGS = ("normalization", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
CASES = [
    {"name": "given"},
    {"name": "small volumes", "sizes": {"batch_size": 16, "channels": 320, "depth": 16, "height": 16, "width": 16}},
    {"name": "one large volume", "sizes": {"batch_size": 1, "depth": 128, "height": 160, "width": 160}},
    {"name": "odd", "sizes": {"channels": 31, "depth": 95, "height": 101, "width": 89}},
]
RANGES = {"depth": (72, 112), "height": (72, 112), "width": (72, 112)}
