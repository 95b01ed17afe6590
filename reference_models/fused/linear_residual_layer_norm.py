"""Output of a BERT block: linear layer, residual sum, and layer normalisation."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden_features):
        super().__init__()
        self.linear = nn.Linear(hidden_features, features)
        self.norm = nn.LayerNorm(features)
        # Not the ones and zeros of a fresh layer: leaving them out must show.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias)

    def forward(self, x, residual):
        return self.norm(self.linear(x) + residual)


tokens = 8192
features = 1024
hidden_features = 4096


def get_inputs():
    return [torch.randn(tokens, hidden_features), torch.randn(tokens, features)]


def get_init_inputs():
    return [features, hidden_features]


INPUTS = {"x": "real", "residual": "real"}
SMALL = {"tokens": 83, "features": 203, "hidden_features": 407}
TAGS = ("matmul", "normalization")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "attention output", "sizes": {"tokens": 32768, "features": 768, "hidden_features": 768}},
    {"name": "half precision", "sizes": {"tokens": 32768}, "dtype": "float16"},
    {"name": "odd", "sizes": {"tokens": 8179, "features": 1021, "hidden_features": 4091}},
]
RANGES = {"tokens": (1024, 8192)}
