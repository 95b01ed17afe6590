"""Three layers of products of the input with linear functions of the state, as in deep and cross networks."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(features, features) for _ in range(layers))

    def forward(self, x):
        state = x
        for layer in self.layers:
            state = x * layer(state) + state
        return state


batch_size = 16384
features = 1024
layers = 3


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return [features, layers]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 83, "features": 203}
TAGS = ("matmul", "elementwise")
DISTRIBUTIONS = ("as_given", "uniform", "zeros")
CASES = [
    {"name": "given"},
    {"name": "narrow", "sizes": {"batch_size": 131072, "features": 256}},
    {"name": "many layers", "sizes": {"batch_size": 8192, "layers": 6}},
    {"name": "odd", "sizes": {"batch_size": 16381, "features": 1021}},
]
RANGES = {"batch_size": (4096, 16384)}
