"""Linear layer in 8-bit integers: rows are scaled by their largest value and rounded, the product is scaled back."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (out_features, features), dtype=torch.int8))
        self.scale = nn.Parameter((0.5 + torch.rand(out_features)) / (127 * features**0.5))

    def forward(self, x):
        step = x.abs().amax(dim=-1, keepdim=True).to(self.scale.dtype).clamp(min=1e-6) / 127
        levels = torch.round(x / step).to(torch.int8)
        return (torch._int_mm(levels, self.weight.t()) * step * self.scale).to(x.dtype)


tokens = 8192
features = 4096
out_features = 8192


def get_inputs():
    return [torch.randn(tokens, features, dtype=torch.bfloat16)]


def get_init_inputs():
    return [features, out_features]


INPUTS = {"x": "real"}
SMALL = {"tokens": 43, "features": 312, "out_features": 200}
TAGS = ("quantization", "matmul", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "tiny", "scale_1e-12", "zeros")
CASES = [
    {"name": "given"},
    {"name": "decode", "sizes": {"tokens": 32, "features": 8192, "out_features": 57344}},
    {"name": "deep", "sizes": {"tokens": 4096, "features": 14336, "out_features": 4096}},
    {"name": "odd", "sizes": {"tokens": 8179, "features": 4104, "out_features": 8200}},
]
RANGES = {"tokens": (4096, 8192)}
