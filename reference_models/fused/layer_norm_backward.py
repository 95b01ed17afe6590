"""Residual sum and layer normalisation of a transformer in training, forward and backward."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        # Not the ones and zeros of a fresh layer: leaving them out must show.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias)

    def forward(self, x, residual):
        return self.norm(x + residual)


tokens = 8192
features = 4096


def get_inputs():
    return [2 * torch.randn(tokens, features), torch.randn(tokens, features)]


def get_init_inputs():
    return [features]


INPUTS = {"x": "real", "residual": "real"}
SMALL = {"tokens": 97, "features": 307}
TAGS = ("normalization", "backward")
DISTRIBUTIONS = ("as_given", "uniform", "large")
BACKWARD = True
CASES = [
    {"name": "given"},
    {"name": "many short rows", "sizes": {"tokens": 65536, "features": 768}},
    {"name": "half precision", "dtype": "bfloat16"},
    {"name": "odd", "sizes": {"tokens": 4099, "features": 2049}},
]
RANGES = {"tokens": (2000, 8192)}
