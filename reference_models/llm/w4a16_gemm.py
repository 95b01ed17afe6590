"""Linear layer with 4-bit weights, two in a byte, and a scale and a zero point per group of inputs."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, out_features, group_size):
        super().__init__()
        groups = features // group_size
        self.register_buffer("packed", torch.randint(0, 256, (out_features, features // 2), dtype=torch.uint8))
        scale = (0.5 + torch.rand(out_features, groups, 1)) / (4 * features**0.5)
        self.scale = nn.Parameter(scale.to(torch.bfloat16))
        self.register_buffer("zero", torch.randint(4, 12, (out_features, groups, 1), dtype=torch.uint8))

    def forward(self, x):
        levels = torch.stack([self.packed & 15, self.packed >> 4], dim=-1).view(len(self.packed), self.zero.size(1), -1)
        weight = (levels.to(x.dtype) - self.zero.to(x.dtype)) * self.scale
        return nn.functional.linear(x, weight.flatten(1))


tokens = 64
features = 8192
out_features = 8192
group_size = 128


def get_inputs():
    return [torch.randn(tokens, features, dtype=torch.bfloat16)]


def get_init_inputs():
    return [features, out_features, group_size]


INPUTS = {"x": "real"}
SMALL = {"tokens": 19, "features": 312, "out_features": 201, "group_size": 24}
TAGS = ("quantization", "matmul", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "large", "zeros")
CASES = [
    {"name": "given"},
    {"name": "one token", "sizes": {"tokens": 1, "out_features": 57344}},
    {"name": "prefill", "sizes": {"tokens": 4096}, "dtype": "float16"},
    {"name": "odd", "sizes": {"tokens": 61, "features": 11008, "out_features": 32771, "group_size": 32}},
]
RANGES = {"tokens": (2, 256)}
