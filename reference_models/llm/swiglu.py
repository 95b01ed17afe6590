"""SwiGLU of a packed projection: SiLU of the first half of each row, times the second half."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, packed):
        gate, up = packed.chunk(2, dim=-1)
        return nn.functional.silu(gate) * up


tokens = 16384
hidden_features = 11008


def get_inputs():
    return [2 * torch.randn(tokens, 2 * hidden_features, dtype=torch.bfloat16)]


def get_init_inputs():
    return []


INPUTS = {"packed": "real"}
SMALL = {"tokens": 271, "hidden_features": 1009}
TAGS = ("elementwise", "fusion", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "alternating", "zeros")
DETERMINISTIC = True
CASES = [
    {"name": "given"},
    {"name": "narrow", "sizes": {"tokens": 131072, "hidden_features": 1408}},
    {"name": "wide", "sizes": {"tokens": 4096, "hidden_features": 53248}},
    {"name": "odd", "sizes": {"tokens": 16381, "hidden_features": 11003}},
]
RANGES = {"tokens": (4096, 16384)}
