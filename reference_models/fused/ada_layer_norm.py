"""Layer normalisation with a scale and a shift per sample, computed from a condition, as in diffusion transformers."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, condition_features, eps):
        super().__init__()
        self.modulation = nn.Linear(condition_features, 2 * features)
        self.eps = eps

    def forward(self, x, condition):
        shift, scale = self.modulation(nn.functional.silu(condition)).unsqueeze(1).chunk(2, dim=-1)
        x = nn.functional.layer_norm(x, x.shape[-1:], eps=self.eps)
        return x * (1 + scale) + shift


batch_size = 32
sequence_length = 1024
features = 1152
condition_features = 1152
eps = 1e-6


def get_inputs():
    return [1 + 2 * torch.randn(batch_size, sequence_length, features), 3 * torch.randn(batch_size, condition_features)]


def get_init_inputs():
    return [features, condition_features, eps]


INPUTS = {"x": "real", "condition": "real"}
SMALL = {"batch_size": 3, "sequence_length": 97, "features": 203, "condition_features": 119}
TAGS = ("normalization", "elementwise")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "zeros")
CASES = [
    {"name": "given"},
    {"name": "wide", "sizes": {"batch_size": 4, "sequence_length": 4096, "features": 3072, "condition_features": 3072}},
    {"name": "half precision", "sizes": {"batch_size": 64}, "dtype": "bfloat16"},
    {"name": "odd", "sizes": {"batch_size": 29, "sequence_length": 1021, "features": 1153}},
]
RANGES = {"sequence_length": (512, 1024)}
