"""Layer normalisation over the last dimension, with weight and bias."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        # Not the ones and zeros of a fresh layer: leaving them out must show.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return self.norm(x)


batch_size = 32
sequence_length = 2048
features = 1024


def get_inputs():
    return [torch.randn(batch_size, sequence_length, features)]


def get_init_inputs():
    return [features]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 7, "sequence_length": 277, "features": 771}
TAGS = ("reduction", "normalization")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
CASES = [
    {"name": "given"},
    {"name": "wide", "sizes": {"batch_size": 4, "sequence_length": 1024, "features": 16384}},
    {"name": "odd", "sizes": {"sequence_length": 2039, "features": 1021}},
]
RANGES = {"features": (512, 2048)}
