"""One matrix product per expert: tokens are sorted by expert, and groups have different sizes, zero included."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, experts, features, out_features):
        super().__init__()
        weight = torch.randn(experts, features, out_features, dtype=torch.bfloat16)
        self.weight = nn.Parameter(weight / features**0.5)

    def forward(self, tokens, group_ends):
        return nn.functional.grouped_mm(tokens, self.weight, offs=group_ends)


token_count = 16384
experts = 32
features = 2048
out_features = 2816


def get_inputs():
    tokens = torch.randn(token_count, features, dtype=torch.bfloat16)
    ends = torch.randint(0, token_count + 1, (experts,)).sort().values
    ends[-1:] = token_count
    return [tokens, ends.to(torch.int32)]


def get_init_inputs():
    return [experts, features, out_features]


INPUTS = {"tokens": "real", "group_ends": {"kind": "sorted", "low": 0, "high": "token_count"}}
SMALL = {"token_count": 211, "experts": 7, "features": 104, "out_features": 88}
TAGS = ("moe", "matmul", "bf16")
DISTRIBUTIONS = ("as_given", "uniform", "alternating", "zeros")
CASES = [
    {"name": "given"},
    {
        "name": "few large experts",
        "sizes": {"token_count": 4096, "experts": 8, "features": 4096, "out_features": 14336},
    },
    {"name": "decode", "sizes": {"token_count": 256, "experts": 128, "out_features": 1536}},
    {"name": "odd", "sizes": {"token_count": 16381, "experts": 60, "features": 2056, "out_features": 1416}},
]
RANGES = {"token_count": (4096, 16384)}
