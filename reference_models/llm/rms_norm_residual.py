"""A residual sum and its RMS normalisation with learned weights; both are returned."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.5 * torch.randn(features, dtype=torch.bfloat16))
        self.eps = eps

    def forward(self, x, residual):
        residual = x + residual
        return nn.functional.rms_norm(residual, residual.shape[-1:], self.weight, self.eps), residual


tokens = 16384
features = 4096
eps = 1e-6


def get_inputs():
    x = torch.randn(tokens, features, dtype=torch.bfloat16)
    return [x, 3 * torch.randn(tokens, features, dtype=torch.bfloat16)]


def get_init_inputs():
    return [features, eps]


INPUTS = {"x": "real", "residual": "real"}
SMALL = {"tokens": 317, "features": 1037}
TAGS = ("normalization", "reduction", "fusion", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
CASES = [
    {"name": "given"},
    {"name": "wide", "sizes": {"tokens": 4096, "features": 16384}},
    {"name": "short rows", "sizes": {"tokens": 524288, "features": 128}},
    {"name": "odd", "sizes": {"tokens": 16381, "features": 4099}},
]
RANGES = {"tokens": (4096, 16384)}
