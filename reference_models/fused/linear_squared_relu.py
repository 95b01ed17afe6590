"""Linear layer without bias and the square of a ReLU."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden_features):
        super().__init__()
        self.linear = nn.Linear(features, hidden_features, bias=False)

    def forward(self, x):
        return torch.relu(self.linear(x)).square()


tokens = 8192
features = 1024
hidden_features = 4096


def get_inputs():
    return [2 * torch.randn(tokens, features)]


def get_init_inputs():
    return [features, hidden_features]


INPUTS = {"x": "real"}
SMALL = {"tokens": 83, "features": 203, "hidden_features": 407}
TAGS = ("matmul", "activation")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
CASES = [
    {"name": "given"},
    {
        "name": "half precision",
        "sizes": {"tokens": 4096, "features": 4096, "hidden_features": 16384},
        "dtype": "bfloat16",
    },
    {"name": "few rows", "sizes": {"tokens": 256, "features": 2048, "hidden_features": 8192}},
    {"name": "odd", "sizes": {"tokens": 8179, "features": 1021, "hidden_features": 4091}},
]
RANGES = {"tokens": (1024, 8192)}
