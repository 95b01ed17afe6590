"""Linear layer whose output is scaled per feature and added to the residual, as in deep vision transformers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden_features):
        super().__init__()
        self.linear = nn.Linear(hidden_features, features)
        self.scale = nn.Parameter(torch.randn(features))

    def forward(self, x, residual):
        return residual + self.scale * self.linear(x)


tokens = 16384
features = 768
hidden_features = 3072


def get_inputs():
    return [2 * torch.randn(tokens, hidden_features), torch.randn(tokens, features)]


def get_init_inputs():
    return [features, hidden_features]


INPUTS = {"x": "real", "residual": "real"}
SMALL = {"tokens": 83, "features": 203, "hidden_features": 407}
TAGS = ("matmul", "elementwise")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "wide", "sizes": {"tokens": 4112, "features": 1536, "hidden_features": 6144}},
    {"name": "half precision", "sizes": {"tokens": 65536}, "dtype": "bfloat16"},
    {"name": "odd", "sizes": {"tokens": 16381, "features": 769, "hidden_features": 3067}},
]
RANGES = {"tokens": (2048, 16384)}
