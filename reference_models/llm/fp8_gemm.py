"""Product of two fp8 matrices with a scale per row of each, in bf16."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.register_buffer("weight", torch.randn(out_features, features).to(torch.float8_e4m3fn))
        self.register_buffer("weight_scale", (0.5 + torch.rand(1, out_features)) / features**0.5)

    def forward(self, x, scale):
        return torch._scaled_mm(x, self.weight.t(), scale, self.weight_scale, out_dtype=torch.bfloat16)


tokens = 8192
features = 4096
out_features = 8192


def get_inputs():
    return [torch.randn(tokens, features).to(torch.float8_e4m3fn), 0.5 + torch.rand(tokens, 1)]


def get_init_inputs():
    return [features, out_features]


INPUTS = {"x": "real", "scale": "real"}
SMALL = {"tokens": 43, "features": 304, "out_features": 208}
TAGS = ("quantization", "matmul", "fp8")
CASES = [
    {"name": "given"},
    {"name": "decode", "sizes": {"tokens": 16, "features": 16384, "out_features": 26624}},
    {"name": "deep", "sizes": {"tokens": 4096, "features": 14336, "out_features": 4096}},
    {"name": "odd", "sizes": {"tokens": 4093, "features": 4112, "out_features": 8208}},
]
RANGES = {"tokens": (4096, 8192), "out_features": (4096, 8192, 16)}
