"""Two linear layers with an exact GELU between them."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden_features):
        super().__init__()
        self.expand = nn.Linear(features, hidden_features)
        self.contract = nn.Linear(hidden_features, features)

    def forward(self, x):
        return self.contract(nn.functional.gelu(self.expand(x)))


batch_size = 4096
features = 1024
hidden_features = 4096


def get_inputs():
    return [torch.randn(batch_size, features)]


def get_init_inputs():
    return [features, hidden_features]


INPUTS = {"x": "real"}
SMALL = {"batch_size": 93, "features": 203, "hidden_features": 811}
TAGS = ("matmul", "fusion")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "few rows", "sizes": {"batch_size": 32}},
    {"name": "odd", "sizes": {"batch_size": 4093, "features": 1021, "hidden_features": 4091}},
]
RANGES = {"batch_size": (256, 4096)}
