"""Projection to two halves, and the product of one with the GELU of the other, as in diffusion transformers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden_features):
        super().__init__()
        self.projection = nn.Linear(features, 2 * hidden_features)

    def forward(self, x):
        value, gate = self.projection(x).chunk(2, dim=-1)
        return value * nn.functional.gelu(gate)


tokens = 8192
features = 1024
hidden_features = 4096


def get_inputs():
    return [2 * torch.randn(tokens, features)]


def get_init_inputs():
    return [features, hidden_features]


INPUTS = {"x": "real"}
SMALL = {"tokens": 83, "features": 203, "hidden_features": 307}
TAGS = ("matmul", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {
        "name": "half precision",
        "sizes": {"tokens": 16384, "features": 1280, "hidden_features": 5120},
        "dtype": "bfloat16",
    },
    {"name": "few rows", "sizes": {"tokens": 256, "features": 1280, "hidden_features": 5120}},
    {"name": "odd", "sizes": {"tokens": 8179, "features": 1021, "hidden_features": 4091}},
]
RANGES = {"tokens": (1024, 8192)}
