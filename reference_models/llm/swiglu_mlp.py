"""Feed-forward block of a decoder: two projections, SiLU of one times the other, and a projection back."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, hidden_features):
        super().__init__()
        self.gate = nn.Linear(features, hidden_features, bias=False, dtype=torch.bfloat16)
        self.up = nn.Linear(features, hidden_features, bias=False, dtype=torch.bfloat16)
        self.down = nn.Linear(hidden_features, features, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


tokens = 4096
features = 4096
hidden_features = 11008


def get_inputs():
    return [2 * torch.randn(tokens, features, dtype=torch.bfloat16)]


def get_init_inputs():
    return [features, hidden_features]


INPUTS = {"x": "real"}
SMALL = {"tokens": 61, "features": 184, "hidden_features": 472}
TAGS = ("matmul", "fusion", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "decode", "sizes": {"tokens": 16, "hidden_features": 28672}},
    {"name": "wide", "sizes": {"tokens": 1024, "features": 8192, "hidden_features": 14336}},
    {"name": "odd", "sizes": {"tokens": 4093, "features": 3580, "hidden_features": 9476}},
]
RANGES = {"tokens": (512, 4096)}
