"""Scores times a scale, plus a bias per head and position pair, softmax where a mask allows, as in window attention."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, heads, length, scale):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(heads, length, length))
        self.scale = scale

    def forward(self, scores, allowed):
        scores = scores * self.scale + self.bias
        return torch.softmax(scores.masked_fill(~allowed[:, None], float("-inf")), dim=-1)


batch_size = 256
heads = 12
length = 144
scale = 0.5


def get_inputs():
    # A position may always see itself.
    allowed = (torch.rand(batch_size, length, length) < 0.6) | torch.eye(length, dtype=torch.bool)
    return [2 * torch.randn(batch_size, heads, length, length), allowed]


def get_init_inputs():
    return [heads, length, scale]


INPUTS = {"scores": "real", "allowed": {"kind": "mask", "structure": "nonempty"}}
SMALL = {"batch_size": 5, "heads": 3, "length": 49}
TAGS = ("reduction", "elementwise")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "scale_1e6", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {"name": "small windows", "sizes": {"batch_size": 2048, "length": 49}},
    {"name": "long rows", "sizes": {"batch_size": 8, "heads": 8, "length": 1024}},
    {"name": "odd", "sizes": {"batch_size": 127, "heads": 15, "length": 197}, "dtype": "bfloat16"},
]
RANGES = {"length": (64, 144)}
