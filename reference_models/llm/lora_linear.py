"""A linear layer with a low-rank correction that is computed beside it and added with a scale."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, out_features, rank, scale):
        super().__init__()
        self.base = nn.Linear(features, out_features, bias=False, dtype=torch.bfloat16)
        self.down = nn.Linear(features, rank, bias=False, dtype=torch.bfloat16)
        self.up = nn.Linear(rank, out_features, bias=False, dtype=torch.bfloat16)
        self.scale = scale

    def forward(self, x):
        return self.base(x) + self.scale * self.up(self.down(x))


tokens = 8192
features = 4096
out_features = 4096
rank = 16
scale = 2.0


def get_inputs():
    return [torch.randn(tokens, features, dtype=torch.bfloat16)]


def get_init_inputs():
    return [features, out_features, rank, scale]


INPUTS = {"x": "real"}
SMALL = {"tokens": 83, "features": 312, "out_features": 280, "rank": 8}
TAGS = ("matmul", "fusion", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "high rank", "sizes": {"rank": 256}},
    {"name": "decode", "sizes": {"tokens": 16, "features": 8192, "out_features": 28672}},
    {"name": "odd", "sizes": {"tokens": 8179, "features": 4100, "out_features": 4092, "rank": 12}},
]
RANGES = {"tokens": (2048, 8192)}
