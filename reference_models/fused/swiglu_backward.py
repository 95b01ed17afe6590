"""Gate of a SwiGLU block in training, after its projections: the product of one half with the SiLU of the other."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, hidden_features):
        super().__init__()
        self.scale = nn.Parameter(1.0 + 0.3 * torch.randn(hidden_features))

    def forward(self, projected):
        value, gate = projected.chunk(2, dim=-1)
        return value * nn.functional.silu(gate) * self.scale


tokens = 8192
hidden_features = 4096


def get_inputs():
    return [2 * torch.randn(tokens, 2 * hidden_features)]


def get_init_inputs():
    return [hidden_features]


INPUTS = {"projected": "real"}
SMALL = {"tokens": 97, "hidden_features": 307}
TAGS = ("activation", "backward")
DISTRIBUTIONS = ("as_given", "uniform", "large")
BACKWARD = True
CASES = [
    {"name": "given"},
    {"name": "few long rows", "sizes": {"tokens": 512, "hidden_features": 28672}},
    {"name": "half precision", "dtype": "bfloat16"},
    {"name": "odd", "sizes": {"tokens": 4099, "hidden_features": 2049}},
]
RANGES = {"tokens": (2000, 8192)}
